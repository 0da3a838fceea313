"""The common part of group and transaction coordinators: shards of pure state, loaded from the partitions of an
internal topic.
"""
