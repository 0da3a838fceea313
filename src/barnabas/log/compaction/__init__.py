"""The log cleaner, which compacts logs."""
