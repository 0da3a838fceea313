"""APIs on log directories: what lies where, and moving it."""
