"""Policies: what a cluster's owners allow beyond what Kafka's protocol allows. A public room.

A policy of one's own derives from `CreateTopicPolicy` or `AlterConfigPolicy` and raises `PolicyViolation`.
"""

from barnabas.policy.interfaces import (
    AlterConfigPolicy,
    ConfigResource,
    ConfigResourceType,
    CreateTopicPolicy,
    PolicyViolation,
)

__all__ = [
    "AlterConfigPolicy",
    "ConfigResource",
    "ConfigResourceType",
    "CreateTopicPolicy",
    "PolicyViolation",
]
