"""Study files: reading, writing, overriding values, and their JSON Schema."""
