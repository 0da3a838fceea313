"""The command line: speaks the Kafka protocol through `client/`, prints, owns no logic."""
