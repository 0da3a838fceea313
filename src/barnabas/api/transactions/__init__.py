"""Producer ids; transactions."""
