"""Processes around Spark: the JVM, sessions, submitting."""
