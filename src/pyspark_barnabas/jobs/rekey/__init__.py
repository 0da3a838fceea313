"""The rekey job: copies a keyed topic into one with another number of partitions."""
