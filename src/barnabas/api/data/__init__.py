"""Records: produce, fetch, offsets, deletion."""
