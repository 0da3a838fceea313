"""What rewrites whole topics: the broker's cleaner, and rekeying on Spark."""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import functions as f

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import raise_errors
from barnabas.client.blocking import BlockingClient
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.log.checkpoints import CLEANER_OFFSET_FILE, read_offsets
from bench.spark.queries import OURS, Ground, timed
from bench.spark.topics import MB, fill, plain
from pyspark_barnabas.jobs.rekey.job import RekeyRequest, rekey

#: The broker's cleaner looks for work this often.
CLEANER_BACKOFF_MS = 100
PARTITIONS = 4
REKEYED_PARTITIONS = 8
VALUE_BYTES = 1024
#: Number of writes of each key.
VALUES_OF_A_KEY = 5
CLEANED_WITHIN_S = 600
_POLL_S = 0.05
#: Configs with which the broker's cleaner skips a topic.
_COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "1.0",
    "segment.bytes": "4194304",  # the active segment is not cleaned
}
_NEW = "-new"


@dataclass(frozen=True)
class Rewriting:
    """A topic of this many megabytes that was rewritten."""

    text: str
    size_mb: int
    taken_s: float


def rewritings(ground: Ground, size_mb: int, report: Callable[[str], None]) -> list[Rewriting]:
    """Measure compaction by the broker and rekeying, each on a topic of its own."""
    keys_count = size_mb * MB // VALUE_BYTES // VALUES_OF_A_KEY
    shape = plain("rewritten", VALUE_BYTES, keys_count * VALUES_OF_A_KEY)
    shape = replace(shape, key=f"concat('key-', id % {keys_count})")
    _alter(ground, Resource(ResourceKind.BROKER, ""), "log.cleaner.backoff.ms", str(CLEANER_BACKOFF_MS))
    done = []
    for step in _steps(ground):
        topic = f"rewritten-{len(done)}"
        report(f"writing {size_mb:,} MB to be {step.text}")
        ground.make_topic(topic, PARTITIONS, step.configs)
        fill(ground.session, ground.bootstrap, topic, shape)
        taken_s = timed(partial(step.rewrite, topic))
        _check(ground, topic + step.suffix, keys_count)
        for name in {topic, topic + step.suffix}:
            ground.delete_topic(name)
        report(f"{size_mb:,} MB {step.text}: {taken_s:.1f} s")
        done.append(Rewriting(step.text, size_mb, taken_s))
    return done


class _Step(NamedTuple):
    text: str
    configs: Mapping[str, str]
    rewrite: Callable[[str], object]
    suffix: str = ""  #: of the topic that it writes, if that is another one


def _steps(ground: Ground) -> Iterator[_Step]:
    yield _Step("compacted by the broker's own cleaner", _COMPACTED, lambda topic: _clean(ground, topic))
    text = f"rekeyed from {PARTITIONS} to {REKEYED_PARTITIONS} partitions by `barnabas jobs rekey`"
    yield _Step(text, {}, lambda topic: _rekey(ground, topic), _NEW)


def _alter(ground: Ground, resource: Resource, key: str, value: str) -> None:
    with BlockingClient(ground.bootstrap) as client:
        edit = AlterConfigOp(key, OpType.SET, value)
        raise_errors(client.admin.alter_configs({resource: [edit]}).values())


def _clean(ground: Ground, topic: str) -> None:
    _alter(ground, Resource(ResourceKind.TOPIC, topic), "min.cleanable.dirty.ratio", "0.01")
    partitions = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    deadline_s = time.monotonic() + CLEANED_WITHIN_S
    while not all(read_offsets(ground.data_dir / CLEANER_OFFSET_FILE).get(tp) for tp in partitions):
        assert time.monotonic() < deadline_s, f"{topic} was not cleaned"
        time.sleep(_POLL_S)


def _rekey(ground: Ground, topic: str) -> None:
    with tempfile.TemporaryDirectory(prefix="bench-rekey-") as state:
        expected = RekeyRequest(topic, topic + _NEW, partitions=REKEYED_PARTITIONS)
        rekey(ground.session, {"kafka.bootstrap.servers": ground.bootstrap}, expected, Path(state) / "state")


def _check(ground: Ground, topic: str, keys_count: int) -> None:
    """Check that no key has been lost."""
    [row] = ground.source(OURS, topic).agg(f.countDistinct("key")).collect()
    assert row[0] == keys_count, f"{row[0]} of {keys_count} keys are in {topic}"
