"""Log directories: describe them, move replicas, import segments."""
