"""Pipelines declared in a file: from topics, files and tables through SQL or Python to topics and tables, each row
once.
"""
