"""What everything rests on: time, identifiers, limits. Imports nothing of the project."""
