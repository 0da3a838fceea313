"""What the broker's configuration says about new topics, as decisions need it."""

from collections.abc import Mapping

from barnabas.api.context import Node
from barnabas.config.topics import validate_topic_overrides
from barnabas.metadata.topic_creation import CreationRules


def creation_rules(node: Node) -> CreationRules:
    """The defaults and checks for topics made by this node."""

    def check_configs(name: str, overrides: Mapping[str, str | None]) -> None:
        validate_topic_overrides(node.config, overrides)

    return CreationRules(
        partition_count_default=node.config.integer("num.partitions"),
        replication_factor_default=node.config.integer("default.replication.factor"),
        check_configs=check_configs,
    )
