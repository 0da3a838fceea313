"""A small Kafka client: asyncio first, and a blocking face, for the CLI, followers, console and Spark."""
