"""Clients that tell brokers how they are."""
