"""A Kafka client for the CLI, followers, the console and Spark: asyncio, with a blocking interface."""
