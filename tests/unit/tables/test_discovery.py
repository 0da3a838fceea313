"""Topics that ask for tables are found."""

from collections.abc import Collection, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from barnabas.client.admin.model import ConfigEntry
from barnabas.client.blocking import BlockingClient
from barnabas.client.core.metadata import TopicInfo
from barnabas.config.config_resource import Resource
from barnabas.config.config_source import ConfigSource
from barnabas.tables.discovery import find_tables


class ManyTopics:
    """An admin client of a cluster whose topics all ask for tables."""

    def __init__(self, count: int) -> None:
        self._names = [f"t{number}" for number in range(count)]
        self.request_sizes: list[int] = []

    def describe_topics(self, topics: Collection[str] | None) -> dict[str, TopicInfo]:
        assert topics is None
        return {name: TopicInfo(name, bytes(16), False, ()) for name in self._names}

    def describe_configs(
        self, resources: Sequence[Resource], keys: Sequence[str], **_: Any
    ) -> dict[Resource, list[ConfigEntry]]:
        self.request_sizes.append(len(resources) * (1 + len(keys)))
        return {resource: [FORMAT] for resource in resources}


FORMAT = ConfigEntry("barnabas.table.format", "delta", ConfigSource.DYNAMIC_TOPIC_CONFIG, False, False)


def test_requests_stay_small_on_a_cluster_of_many_topics(tmp_path: Path) -> None:
    """A broker refuses requests with more than 100,000 elements."""
    admin = ManyTopics(12_000)
    client = cast("BlockingClient", SimpleNamespace(admin=admin))
    assert len(find_tables(client, None, {}, tmp_path).tables) == 12_000
    assert max(admin.request_sizes) < 10_000
