"""Time, identifiers, limits and other foundations. Imports nothing of the project."""
