"""Finds the topics that have tables."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from barnabas.client.admin.model import ConfigEntry
from barnabas.client.blocking import BlockingClient
from barnabas.client.core.metadata import TopicInfo
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.config.keys.table import TABLE_KEYS
from barnabas.declared.live import batches
from barnabas.objects.location import Location
from barnabas.tables.errors import TableError
from barnabas.tables.settings import TableSettings, table_settings
from barnabas.wire.errors import KafkaError

_NAMES = tuple(key.name for key in TABLE_KEYS)


class FoundTables(NamedTuple):
    """The tables that topics ask for, by topic."""

    tables: dict[str, TableSettings]
    problems: dict[str, TableError | KafkaError]  #: why tables cannot be kept, by topic


def find_tables(
    client: BlockingClient,
    topics: Collection[str] | None,
    overrides: Mapping[str, str],
    base_location: Location | None,
) -> FoundTables:
    """Read the configs of topics.

    :param topics: None for all topics.
    :param overrides: Configs that precede those of the topics, for Kafka's brokers, which do not know them.
    :raises BrokerConnectionError: If no broker answers.
    """
    described = client.admin.describe_topics(topics)
    names = [name for name, info in described.items() if isinstance(info, TopicInfo) and not info.is_internal]
    found = FoundTables({}, {name: info for name, info in described.items() if isinstance(info, KafkaError)})
    resources = [Resource(ResourceKind.TOPIC, name) for name in names]
    for resource, entries in _configs(client, resources):
        topic = resource.name
        if isinstance(entries, KafkaError):
            if topics is not None:
                found.problems[topic] = entries
            continue
        values = {entry.name: entry.value for entry in entries if entry.value is not None}
        try:
            settings = table_settings(topic, {**values, **overrides}, base_location)
        except TableError as error:
            found.problems[topic] = error
        else:
            if settings is not None:
                found.tables[topic] = settings
    return found


def _configs(
    client: BlockingClient, resources: Sequence[Resource]
) -> Iterator[tuple[Resource, list[ConfigEntry] | KafkaError]]:
    """Describe the configs of tables in requests that no broker refuses for their size."""
    for batch in batches(resources):
        yield from client.admin.describe_configs(batch, _NAMES, synonyms=False).items()
