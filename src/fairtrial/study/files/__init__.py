"""Study files: reading, writing, overriding values, and the JSON Schema."""
