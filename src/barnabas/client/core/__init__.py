"""Connections to brokers, and the choice of the broker to ask."""
