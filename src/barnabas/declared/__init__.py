"""The declared state of a cluster: written as YAML, compared with a live cluster of any Kafka, and applied to it."""
