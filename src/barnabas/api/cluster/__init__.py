"""What the cluster is, and what it serves."""
