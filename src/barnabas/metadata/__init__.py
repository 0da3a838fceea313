"""The cluster's metadata: an immutable image for each revision, pure decisions, and replay as the only way to change
it.
"""
