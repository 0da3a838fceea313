"""Administrative requests that only Barnabas serves."""
