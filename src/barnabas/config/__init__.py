"""Every configuration key as data: type, default, bounds, documentation, and its effect in Barnabas."""
