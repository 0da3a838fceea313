"""Topics for a test: created through one client, and awaited until the broker shows them."""

import time
from collections.abc import Callable

from interop.clients import Client

VISIBLE_TIMEOUT_S = 30.0


def make_topic(helper: Client, name: str, partitions: int = 1, **configs: str) -> str:
    """Create a topic and wait until the broker shows it; ``segment_bytes`` stands for segment.bytes."""
    dotted = {key.replace("_", "."): value for key, value in configs.items()}
    helper.do("create_topic", topic=name, partitions=partitions, configs=dotted)
    eventually(lambda: len(helper.do("metadata")["topics"].get(name, [])) == partitions)
    return name


def eventually(condition: Callable[[], object]) -> None:
    """Wait until ``condition`` holds: brokers show a change shortly after they have accepted it."""
    deadline_s = time.monotonic() + VISIBLE_TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline_s, "the change did not become visible"
        time.sleep(0.05)


def write(client: Client, topic: str, *values: str) -> list[int]:
    """Write records to the first partition; return their offsets."""
    records = [{"key": None, "value": value} for value in values]
    offsets: list[int] = client.do(
        "produce", topic=topic, partition=0, records=records, codec="none", idempotent=True
    )
    return offsets


def write_and_read(client: Client, topic: str) -> list[str]:
    """Create a topic, write "one" and "two", and return the values that the client reads.

    A client that cannot read a partition joins a group that has the topic's name.
    """
    client.do("create_topic", topic=topic, partitions=1, configs={})
    assert write(client, topic, "one", "two") == [0, 1]
    if client.kind.can("consume"):
        return [record["value"] for record in client.do("consume", topic=topic, partition=0, count=2)]
    client.do("join_group", topic=topic, group=topic)
    eventually(lambda: len(client.do("membership")["values"]) == 2)
    values: list[str] = client.do("membership")["values"]
    return values
