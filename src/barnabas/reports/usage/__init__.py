"""Usage: sizes and hot keys of topics, and how to balance their replicas."""
