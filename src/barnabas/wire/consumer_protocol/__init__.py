"""Data that members of a consumer group exchange through the coordinator, which need not understand it."""
