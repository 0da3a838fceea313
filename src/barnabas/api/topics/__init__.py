"""Topics: create, grow, delete, restore."""
