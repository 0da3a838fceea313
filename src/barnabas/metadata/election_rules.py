"""The configs of topics on which the changes of their partitions depend."""

from collections.abc import Callable
from typing import NamedTuple

from barnabas.config.topics import effective_topic_config
from barnabas.metadata.dynamic_config import DynamicConfig
from barnabas.metadata.features import ELR_VERSION
from barnabas.metadata.image import MetadataImage


class ElectionRules(NamedTuple):
    """Reads configs of topics by name."""

    min_isr: Callable[[str], int] = lambda topic: 1  #: min.insync.replicas
    allows_unclean: Callable[[str], bool] = lambda topic: False  #: unclean.leader.election.enable

    def min_isr_with_elr(self, image: MetadataImage, topic: str) -> int | None:
        """Return min.insync.replicas of a topic; None if the cluster has no eligible leader replicas (KIP-966)."""
        return self.min_isr(topic) if image.finalized_features.get(ELR_VERSION, 0) else None


DEFAULT_RULES = ElectionRules()


def election_rules(dynamic_config: DynamicConfig, image: Callable[[], MetadataImage]) -> ElectionRules:
    """Return the rules that follow the configuration of a broker and the configs of topics."""

    def min_isr(topic: str) -> int:
        own = image().topic_configs.get(topic, {}).get("min.insync.replicas")
        return dynamic_config.current.integer("min.insync.replicas") if own is None else int(own)

    def allows_unclean(topic: str) -> bool:
        own = image().topic_configs.get(topic, {})
        return effective_topic_config(dynamic_config.current, own).unclean_leader_election_enable

    return ElectionRules(min_isr, allows_unclean)
