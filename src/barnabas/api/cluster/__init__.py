"""Cluster-wide requests: brokers, metadata, elections, reassignments, features."""
