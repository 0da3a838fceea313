"""Processes around Spark: finding Java, sessions, spark-submit."""
