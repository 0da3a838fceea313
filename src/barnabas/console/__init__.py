"""The web console: pages over the Kafka protocol, with the rights of the person who looks at them."""
