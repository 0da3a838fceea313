"""The command line. It uses `client/` for the Kafka protocol and prints results; it has no logic of its own."""
