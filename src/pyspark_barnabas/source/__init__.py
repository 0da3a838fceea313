"""The data source: batch and streaming reads."""
