from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from barnabas.base.clock import ManualClock
from barnabas.base.ids import TopicPartition
from barnabas.log import open_log as opening
from barnabas.log.append_info import AppendInfo
from barnabas.log.log_config import LogConfig
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segments.open_files import OpenFiles
from barnabas.wire.records.record import Record, encode_batch

NOW_MS = 1_700_000_000_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
def open_log(tmp_path: Path, clock: ManualClock) -> Callable[..., PartitionLog]:
    """Open the log of t-0; keywords are fields of LogConfig or arguments of `open_log`."""

    def open_(*, config: LogConfig | None = None, **keywords: object) -> PartitionLog:
        fields = {
            name: keywords.pop(name) for name in list(keywords) if name in LogConfig.__dataclass_fields__
        }
        return opening.open_log(
            tmp_path / "t-0",
            TopicPartition("t", 0),
            config=config or LogConfig(**fields),  # type: ignore[arg-type]
            clock=clock,
            random=Random(0),
            open_files=OpenFiles(4),
            **keywords,  # type: ignore[arg-type]
        )

    return open_


@pytest.fixture
def make_batch(clock: ManualClock) -> Callable[..., memoryview]:
    """Make one produced batch with these values; `timestamp_ms` is that of each record."""

    def make(
        *values: bytes, timestamp_ms: int | None = None, key: bytes | None = None, **options: object
    ) -> memoryview:
        stamp = clock.now_ms if timestamp_ms is None else timestamp_ms
        records = [Record(0, stamp, key, value) for value in values]
        return memoryview(encode_batch(records, **options))  # type: ignore[arg-type]

    return make


@pytest.fixture
def produce(make_batch: Callable[..., memoryview]) -> Callable[..., AppendInfo]:
    """Append one batch as leader of epoch 0, or of `leader_epoch`, and raise the high watermark."""

    def append(log: PartitionLog, *values: bytes, epoch: int = 0, **options: object) -> AppendInfo:
        info = log.append_as_leader(make_batch(*values, **options), epoch)
        log.update_high_watermark(log.log_end_offset)
        return info

    return append
