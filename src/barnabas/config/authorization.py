"""The built-in authorizer's settings, which Apache Kafka passes to its authorizer unread."""

from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError

SUPER_USERS, ALLOW_IF_NO_ACL = "super.users", "allow.everyone.if.no.acl.found"


def super_users(config: BrokerConfig) -> frozenset[str]:
    """Return the principals of `super.users`, separated by semicolons because names may contain commas.

    :raises ConfigError: When a principal has no type.
    """
    text = config.originals.get(SUPER_USERS, "")
    users = frozenset(user.strip() for user in text.split(";") if user.strip())
    for user in users:
        kind, colon, _ = user.partition(":")
        if not kind or not colon:
            raise ConfigError(
                SUPER_USERS, text, f"'{user}' is not valid: must be Type:name;Type:name, such as User:admin"
            )
    return users


def allows_if_no_acl(config: BrokerConfig) -> bool:
    """Whether resources without any ACL are open to everybody; parsed like Java's `Boolean.parseBoolean`."""
    return config.originals.get(ALLOW_IF_NO_ACL, "").strip().lower() == "true"
