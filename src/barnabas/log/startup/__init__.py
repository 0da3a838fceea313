"""Finding, checking and recovering logs when a broker starts."""
