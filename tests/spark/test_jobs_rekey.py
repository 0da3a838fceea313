"""The job `rekey`: every record once, keys in order, continued after kills, groups cut over without a gap."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from barnabas.base.ids import TopicPartition as SinkPartition
from barnabas.cli.main import app
from barnabas.client.admin.model import ConfigEntry
from barnabas.client.producer.partitioner import murmur2
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import KafkaError
from pyspark_barnabas.jobs.common import session as running
from pyspark_barnabas.jobs.rekey.frames import Records
from pyspark_barnabas.jobs.rekey.job import RekeyRequest, rekey
from pyspark_barnabas.jobs.rekey.order import Homes, RekeyError
from pyspark_barnabas.jobs.rekey.state import Copying, RekeyDirectory
from pyspark_barnabas.jobs.rekey.topics import Topics
from pyspark_barnabas.sink.protocol import NO_ROWS, BatchId, TaskCommit
from pyspark_barnabas.source.options import batch_options
from support.rekeyed import check_copy, commit, consume, contents, grow, unread, write
from support.source_rows import SourceRow, consumed_rows, producer
from support.spark import worker_environment
from support.waiting import until


def options_of(broker: EmbeddedBroker) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap}


@pytest.fixture
def grown(broker: EmbeddedBroker, topic: str) -> str:
    """Create a topic that grew from 2 to 3 partitions, which also moves keys between old partitions."""
    broker.create_topic(topic, 2, {"retention.bytes": "100000000", "max.message.bytes": "2000000"})
    write(broker, topic, 2, range(60))
    grow(broker, topic, 3)
    write(broker, topic, 3, range(60, 120))
    return topic


def test_rounds_copy_everything_in_order_and_groups_continue_without_gap_or_repetition(
    spark: SparkSession, broker: EmbeddedBroker, grown: str, names: Iterator[str], tmp_path: Path
) -> None:
    target, ahead, behind, odd = (next(names) for _ in range(4))
    request = RekeyRequest(
        grown, target, was=(2,), partitions=4, groups=(ahead, behind, odd), step_records=200
    )
    first = rekey(spark, options_of(broker), request, tmp_path)
    assert [step.rank for step in first.steps] == sorted(step.rank for step in first.steps)
    assert len(first.steps) > 2
    before = {row.partition: row.offset + 1 for row in consumed_rows(broker.bootstrap, grown)}
    write(broker, grown, 3, range(120, 180))
    ends = {row.partition: row.offset + 1 for row in consumed_rows(broker.bootstrap, grown)}
    positions = {
        ahead: {partition: (before[partition] + 3 * end) // 4 for partition, end in ends.items()},
        behind: {partition: (3 * before[partition] + end) // 4 for partition, end in ends.items()},
        odd: {0: ends[0] // 3, 1: ends[1] // 2},
    }
    for group, offsets in positions.items():
        commit(broker, group, grown, offsets)
    second = rekey(spark, options_of(broker), request, tmp_path, cut_over=True)
    assert second.is_cut_over
    check_copy(broker, grown, target, 4)
    for each in second.groups:
        expected = unread(broker, grown, positions[each.group])
        got = contents(consume(broker, each.group, target))
        if each.group == odd:
            missing = list(got)
            for one in contents(expected):
                missing.remove(one)  # at least once
            assert len(got) == len(expected) + each.again_count
        else:
            assert got == contents(expected)
            assert each.again_count == 0
    settings = {each.name: each.value for each in configs(broker, target)}
    assert (settings["retention.bytes"], settings["max.message.bytes"]) == ("100000000", "2000000")
    assert settings["retention.ms"] == "-1", "the broker's own, here"
    assert rekey(spark, options_of(broker), request, tmp_path, cut_over=True).steps == ()


def configs(broker: EmbeddedBroker, topic: str) -> list[ConfigEntry]:
    [found] = broker.client.admin.describe_configs([Resource(ResourceKind.TOPIC, topic)]).values()
    assert isinstance(found, list)
    return found


class Killed(BaseException):
    """Not caught by any handler: like a kill, it leaves everything as it is."""


def test_a_run_that_dies_at_any_step_is_continued(
    spark: SparkSession,
    broker: EmbeddedBroker,
    grown: str,
    names: Iterator[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = next(names)
    request = RekeyRequest(grown, target, was=(2,), step_records=300)
    written = RekeyDirectory.write
    calls = 0

    def write_and_die(store: RekeyDirectory, state: Copying) -> None:
        """Die when the work is done but not recorded; the next time record it and continue."""
        nonlocal calls
        calls += 1
        if calls % 2:
            raise Killed
        written(store, state)

    deaths = 0
    while True:
        with monkeypatch.context() as patch:
            patch.setattr(RekeyDirectory, "write", write_and_die)
            try:
                rekey(spark, options_of(broker), request, tmp_path, cut_over=True)
            except Killed:
                deaths += 1
            else:
                break
        assert deaths < 40
    assert deaths >= 6
    check_copy(broker, grown, target, 3)


def test_contradicting_levels_equal_those_found_by_comparing_all_pairs(
    spark: SparkSession, broker: EmbeddedBroker, grown: str
) -> None:
    homes = Homes.of([2], 3, 3)
    rows = consumed_rows(broker.bootstrap, grown, committed=True)
    ends = {partition: max(r.offset for r in rows if r.partition == partition) + 1 for partition in range(3)}
    cuts = [{0: 30, 1: 40, 2: 40}, {0: 40, 1: 60, 2: ends[2]}, {0: ends[0], 1: 100, 2: ends[2]}]
    found = Records(spark, options_of(broker), grown, homes).broken_levels(
        {partition: (0, end) for partition, end in ends.items()}, cuts
    )

    def level(row: SourceRow) -> int:
        return sum(row.offset >= cut[row.partition] for cut in cuts)

    def rank(row: SourceRow) -> int:
        assert row.key is not None
        hashed = murmur2(row.key) & 0x7FFFFFFF
        return [hashed % 2, hashed % 3].index(row.partition)

    keyed = [row for row in rows if row.key is not None]
    pairs = {
        (level(later), level(earlier))
        for earlier in keyed
        for later in keyed
        if earlier.key == later.key and rank(earlier) < rank(later) and level(earlier) > level(later)
    }
    assert pairs
    gone = [{n for low, high in each for n in range(low, high)} for each in (pairs, found)]
    assert gone[0] == gone[1]


def test_a_copy_that_would_break_key_order_is_rejected_before_anything_is_written(
    spark: SparkSession, broker: EmbeddedBroker, grown: str, names: Iterator[str], tmp_path: Path
) -> None:
    target = next(names)
    with pytest.raises(RekeyError, match="--was 2 would explain all"):
        rekey(spark, options_of(broker), RekeyRequest(grown, target), tmp_path / "one")
    assert consumed_rows(broker.bootstrap, target) == []
    rekey(spark, options_of(broker), RekeyRequest(grown, target, any_partition=True), tmp_path / "one")
    assert contents(consumed_rows(broker.bootstrap, target, committed=True)) == contents(
        consumed_rows(broker.bootstrap, grown, committed=True)
    )
    with pytest.raises(RekeyError, match="already exists"):
        rekey(spark, options_of(broker), RekeyRequest(grown, target), tmp_path / "other")
    with pytest.raises(RekeyError, match="belongs to the copy"):
        rekey(spark, options_of(broker), RekeyRequest(target, grown), tmp_path / "one")
    with pytest.raises(RekeyError, match="start a new copy in another directory"):
        rekey(spark, options_of(broker), RekeyRequest(grown, target, was=(2,)), tmp_path / "one")
    with pytest.raises(RekeyError, match="the job selects topics and offsets itself"):
        rekey(None, {"startingOffsets": "latest"}, RekeyRequest(grown, target), tmp_path, dry_run=True)


def test_a_copy_whose_target_was_deleted_is_not_continued_and_a_new_one_writes_everything(
    spark: SparkSession, broker: EmbeddedBroker, grown: str, names: Iterator[str], tmp_path: Path
) -> None:
    target = next(names)
    request = RekeyRequest(grown, target, was=(2,))
    rekey(spark, options_of(broker), request, tmp_path / "one")
    broker.delete_topic(target)
    with pytest.raises(RekeyError, match="does not exist any more after records were copied to it"):
        rekey(spark, options_of(broker), request, tmp_path / "one", cut_over=True)
    rekey(spark, options_of(broker), request, tmp_path / "other")
    check_copy(broker, grown, target, 3)
    with pytest.raises(RekeyError, match="was deleted and recreated after records were copied to it"):
        rekey(spark, options_of(broker), request, tmp_path / "one", cut_over=True)


def test_an_active_group_is_not_cut_over(
    spark: SparkSession, broker: EmbeddedBroker, grown: str, names: Iterator[str], tmp_path: Path
) -> None:
    target, group = next(names), next(names)
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe([grown])
    assert consumer.poll(20) is not None
    consumer.commit(offsets=[TopicPartition(grown, 0, 3)], asynchronous=False)
    request = RekeyRequest(grown, target, was=(2,), groups=(group,))
    with pytest.raises(RekeyError, match="has 1 members"):
        rekey(spark, options_of(broker), request, tmp_path, cut_over=True)
    consumer.close()
    assert consumed_rows(broker.bootstrap, target) == []


def test_pending_transactional_offsets_are_rejected_and_marks_of_sinks_are_ignored(
    broker: EmbeddedBroker, topic: str, names: Iterator[str]
) -> None:
    broker.create_topic(topic, 2)
    group, sink = next(names), next(names)
    broker.client.groups.commit_offsets(
        sink, {SinkPartition(topic, 0): TaskCommit(BatchId("", 7), NO_ROWS).to_offset()}
    )
    commit(broker, group, topic, {0: 0})
    writer = producer(broker.bootstrap, transactional_id=f"writer-{topic}")
    writer.init_transactions(20)
    writer.begin_transaction()
    writer.produce(topic, b"one", partition=0)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    offsets = [TopicPartition(topic, 0, 1)]
    writer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 20)
    with Topics(batch_options({**options_of(broker), "subscribe": topic}).connection) as topics:
        with pytest.raises(KafkaError, match="UNSTABLE_OFFSET_COMMIT"):
            topics.positions(topic, ())
        writer.commit_transaction(20)
        until(lambda: topics.stable_ends(topic, 2) == {0: 2, 1: 0})
        until(lambda: committed(topics, topic) == {group: {0: 1}})
    consumer.close()


def committed(topics: Topics, topic: str) -> dict[str, dict[int, int]] | None:
    """Return the committed offsets of groups; None while some are pending."""
    try:
        return topics.positions(topic, ())
    except KafkaError:
        return None


@pytest.mark.long
def test_the_command_is_continued_after_a_kill_and_a_dry_run_changes_nothing(
    spark: SparkSession,
    broker: EmbeddedBroker,
    grown: str,
    names: Iterator[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target, group = next(names), next(names)
    commit(broker, group, grown, {0: 10, 1: 10, 2: 10})
    arguments = [
        "jobs",
        "rekey",
        grown,
        target,
        "--was",
        "2",
        "--state",
        str(tmp_path),
        "-b",
        broker.bootstrap,
        "--master",
        "local[2]",
    ]
    arguments += ["-g", group, "--cut-over", "--json"]
    dry = CliRunner().invoke(app, [*arguments, "--dry-run"])
    assert dry.exit_code == 0, dry.output
    planned = json.loads(dry.stdout)
    assert planned["offsets_count"] > 120
    assert list(tmp_path.iterdir()) == []
    kill = (
        "import os, signal\n"
        "from pyspark_barnabas.jobs.rekey import job as rekey\n"
        "rekey._Job._check_quiet = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run(
        [sys.executable, "-c", f"{kill}from barnabas.cli.main import main; main()", *arguments],
        env={**os.environ, **worker_environment()},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    monkeypatch.setattr(running, "job_session", lambda *_: nullcontext(spark))
    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == 0, ended.output
    done = json.loads(ended.stdout)
    assert done["cut_over"]
    check_copy(broker, grown, target, 3)
    expected = unread(broker, grown, {0: 10, 1: 10, 2: 10})
    assert len(consume(broker, group, target)) == len(expected) + done["groups"][0]["again"]
