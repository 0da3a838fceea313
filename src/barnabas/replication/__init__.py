"""Partitions as replicas of a cluster: leadership, in-sync replicas, high watermark, delayed fetches, moves."""
