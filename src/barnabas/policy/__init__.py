"""Classes of a cluster's owners, which the broker calls. A public package.

Derive a policy from `CreateTopicPolicy` or `AlterConfigPolicy` and raise `PolicyViolation`. Derive an authorizer from
`Authorizer`, and a class that names principals from `PrincipalBuilder`.
"""

from barnabas.policy.interfaces import (
    AlterConfigPolicy,
    ConfigResource,
    ConfigResourceType,
    CreateTopicPolicy,
    PolicyViolation,
)
from barnabas.policy.security_interfaces import (
    Action,
    AuthenticationContext,
    AuthorizableRequestContext,
    Authorizer,
    PrincipalBuilder,
)

__all__ = [
    "Action",
    "AlterConfigPolicy",
    "AuthenticationContext",
    "AuthorizableRequestContext",
    "Authorizer",
    "ConfigResource",
    "ConfigResourceType",
    "CreateTopicPolicy",
    "PolicyViolation",
    "PrincipalBuilder",
]
