"""Cluster state: an immutable image per revision, pure decisions, and replay as the only writer."""
