"""What the commands do; imported when a command runs."""
