"""Find, check and recover logs when a broker starts."""
