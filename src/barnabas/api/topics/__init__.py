"""Topics and partitions made, grown and deleted."""
