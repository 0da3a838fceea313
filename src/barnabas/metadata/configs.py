"""Configs that are set dynamically: what a resource overrides, key by key."""

from collections.abc import Mapping

from barnabas.metadata.noun import Noun

#: topic name -> its overrides; a topic without any has no row
TOPIC_CONFIGS: Noun[Mapping[str, str]] = Noun("topic_configs", dict, dict)
