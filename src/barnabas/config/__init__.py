"""Every configuration key as data: its type, default, bounds, text, and what it does in Barnabas."""
