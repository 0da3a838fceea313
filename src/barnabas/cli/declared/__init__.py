"""`barnabas export`, `plan`, `apply`, `drift`: the declared state of any Kafka cluster."""
