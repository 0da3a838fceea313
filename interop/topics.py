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
