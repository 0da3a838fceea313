"""Pipelines declared in a file: topics and files through SQL or Python into topics and tables, each row once."""
