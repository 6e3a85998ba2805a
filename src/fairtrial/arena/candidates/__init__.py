"""What candidates are: read, resolved against the base, held to the rules, told apart."""
