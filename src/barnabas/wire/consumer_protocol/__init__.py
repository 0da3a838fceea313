"""What members of a consumer group tell each other through the coordinator, which need not understand it."""
