import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.clock import ManualClock
from barnabas.base.ids import TopicPartition
from barnabas.log.log_config import LogConfig
from barnabas.log.open_log import open_log
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segments.open_files import OpenFiles
from barnabas.metadata.topics import PartitionRegistration, TopicImage, initial_state
from barnabas.replication.partition import Partition
from support.trash import TrashBroker


@pytest.fixture
def make_partition(tmp_path: Path) -> Callable[..., Partition]:
    """Return a function that creates t-0, or another partition, on broker 1; keywords are fields of LogConfig."""

    def made(
        replicas: tuple[int, ...] = (1,),
        state: PartitionRegistration | None = None,
        flush_soon: Callable[[PartitionLog], None] = lambda log: None,
        index: int = 0,
        **config: Any,
    ) -> Partition:
        log = open_log(
            tmp_path / f"t-{index}",
            TopicPartition("t", index),
            config=LogConfig(**config),
            clock=ManualClock(),
            random=random.Random(0),
            open_files=OpenFiles(4),
        )
        topic = TopicImage("t", b"t" * 16, (replicas,) * (index + 1))
        return Partition(1, topic, index, log, state or initial_state(replicas), flush_soon)

    return made


@pytest.fixture
def trash_broker(tmp_path: Path) -> TrashBroker:
    """Return a broker with a topic t."""
    broker = TrashBroker([tmp_path / "a", tmp_path / "b"])
    broker.create("t")
    return broker
