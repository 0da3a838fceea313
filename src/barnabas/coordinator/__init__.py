"""What group and transaction coordinators share: shards of pure state, loaded from an internal topic's partitions."""
