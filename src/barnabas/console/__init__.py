"""The web console: pages that use the Kafka protocol, with the rights of the person who opens them."""
