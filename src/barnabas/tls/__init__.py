"""TLS: key stores, contexts and principals, by Kafka's settings. No IO but reading files."""
