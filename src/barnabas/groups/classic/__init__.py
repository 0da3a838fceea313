"""The classic group protocol: members join, the leader assigns, all sync."""
