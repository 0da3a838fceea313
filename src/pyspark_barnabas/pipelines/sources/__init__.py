"""Incremental reads of tables: added rows, each once."""
