"""The archive job: a topic as Parquet files or a Delta table."""
