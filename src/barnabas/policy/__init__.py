"""Policies of a cluster's owners, which restrict what Kafka's protocol allows. A public package.

Derive a policy from `CreateTopicPolicy` or `AlterConfigPolicy` and raise `PolicyViolation`.
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
