"""Administrative requests of any Kafka, and models of their answers."""
