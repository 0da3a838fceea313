"""Connections to brokers, and which broker to ask."""
