"""The classic group protocol: members join, the leader assigns, members sync."""
