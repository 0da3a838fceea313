"""Group coordination."""
