"""The rekey job: a topic with another number of partitions or other keys."""
