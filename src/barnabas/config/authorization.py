"""What the built-in authorizer is configured with: keys that Apache Kafka hands on to its authorizer unread."""

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError

SUPER_USERS, ALLOW_IF_NO_ACL = "super.users", "allow.everyone.if.no.acl.found"


def super_users(config: BrokerConfig) -> frozenset[str]:
    """The principals of `super.users`, which are parted by semicolons, since names may have commas.

    :raises ConfigError: When one has no type.
    """
    text = config.originals.get(SUPER_USERS, "")
    users = frozenset(user.strip() for user in text.split(";") if user.strip())
    for user in users:
        kind, colon, _ = user.partition(":")
        if not kind or not colon:
            raise ConfigError(
                SUPER_USERS, text, f"must be Type:name;Type:name, as User:admin: '{user}' is not"
            )
    return users


def allows_if_no_acl(config: BrokerConfig) -> bool:
    """Whether everybody may do everything to resources to which no ACL applies; Java's idea of true."""
    return config.originals.get(ALLOW_IF_NO_ACL, "").strip().lower() == "true"
