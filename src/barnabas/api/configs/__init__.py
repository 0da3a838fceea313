"""Dynamic configs: describe, alter, list."""
