"""Keys and values as JSON: decoded and encoded by the schemas of a registry."""
