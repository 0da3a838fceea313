"""`barnabas topics delete`, `trash`, `undelete` and `purge` after a mistaken deletion."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from barnabas.base.ids import TopicPartition
from barnabas.cli.main import app
from barnabas.cli.support.times import format_timestamp
from barnabas.client.admin.admin import raise_errors
from barnabas.groups.offsets import cluster_offsets
from barnabas.log.trash.trash import TrashedLogs
from barnabas.testing import EmbeddedBroker
from barnabas.wire.barnabas_messages.undelete_topic import UndeleteTopicRequest
from barnabas.wire.errors import ErrorCode
from barnabas.wire.isolation import Isolation
from support.audit import AUDITED, changes, published
from support.transactions import BEFORE_IMPLICIT, transactional, transactional_produce_request
from support.waiting import until
from support.wire import Wire

Run = Callable[..., Result]


@pytest.fixture
def run(kafka: EmbeddedBroker) -> Run:
    def invoke(*command: str) -> Result:
        environment = {"BARNABAS_BOOTSTRAP": kafka.bootstrap, "COLUMNS": "200"}
        return CliRunner().invoke(app, list(command), env=environment)

    return invoke


def trash(run: Run) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(run("topics", "trash", "--json").stdout)
    return found


def describe(run: Run, name: str) -> dict[str, object]:
    [described] = json.loads(run("topics", "describe", name, "--json").stdout)
    return dict(described)


@pytest.fixture
def deleted(kafka: EmbeddedBroker, run: Run) -> dict[str, object]:
    """Describe topic orders (two partitions with three records), and delete it."""
    run("topics", "create", "orders", "--partitions", "2", "--config", "retention.ms=86400000")
    for value in ("one", "two", "three"):
        kafka.produce("orders", value, partition=1)
    before = describe(run, "orders")
    assert run("topics", "delete", "orders").exit_code == 0
    return before


def values(kafka: EmbeddedBroker, topic: str) -> list[bytes | None]:
    return [record.value for record in kafka.records(topic)]


@pytest.mark.kafka_settings(AUDITED)
def test_a_topic_that_was_deleted_by_mistake_is_undeleted(
    kafka: EmbeddedBroker, run: Run, deleted: dict[str, object]
) -> None:
    [found] = trash(run)
    assert (found["topic"], found["partitions"], found["deleted_by"]) == ("orders", 2, "User:ANONYMOUS")
    assert int(str(found["size_bytes"])) > 200
    assert int(str(found["expires_ms"])) - int(str(found["deleted_ms"])) == 3_600_000
    listed = run("topics", "trash").output
    assert "orders" in listed
    assert format_timestamp(int(str(found["deleted_ms"]))) in listed
    result = run("topics", "undelete", "orders")
    assert (result.exit_code, result.output) == (
        0,
        "orders: undeleted with 2 partitions and 0 committed offsets\n",
    )
    assert describe(run, "orders") == deleted
    assert values(kafka, "orders") == [b"one", b"two", b"three"]
    kafka.produce("orders", "four", partition=1)
    assert values(kafka, "orders") == [b"one", b"two", b"three", b"four"]
    assert trash(run) == []
    published(kafka, "topic/orders", "in the trash", None)
    marks = [each[1:] for each in changes(kafka, "topic/orders") if each[0] == "in the trash"]
    assert [(before is None, after is None) for before, after in marks] == [(True, False), (False, True)]


@pytest.mark.kafka_settings({"transaction.partition.verification.enable": "false"})
def test_a_transaction_that_was_open_is_aborted_so_that_consumers_do_not_wait_for_its_end(
    kafka: EmbeddedBroker, run: Run
) -> None:
    kafka.create_topic("orders")
    with Wire(kafka.port) as wire:
        wire.ask(transactional_produce_request("orders", transactional(77, 0, b"x")), BEFORE_IMPLICIT)
        run("topics", "delete", "orders")
        run("topics", "undelete", "orders")
        kafka.produce("orders", "after")
        request = wire.fetch_request("orders", 0)
        request.isolation_level = Isolation.READ_COMMITTED
        [read] = wire.ask(request).responses[0].partitions
    assert [aborted.producer_id for aborted in read.aborted_transactions] == [77]
    assert read.last_stable_offset == read.high_watermark == 3


@pytest.mark.parametrize("kill", [False, True])
def test_a_deleted_topic_can_be_undeleted_after_restarts(
    kafka: EmbeddedBroker, run: Run, deleted: dict[str, object], kill: bool
) -> None:
    kafka.restart(kill=kill)
    assert [each["topic"] for each in trash(run)] == ["orders"]
    assert run("topics", "undelete", "orders").exit_code == 0
    kafka.restart(kill=kill)
    assert describe(run, "orders") == deleted
    assert values(kafka, "orders") == [b"one", b"two", b"three"]


def test_records_that_were_deleted_stay_deleted(kafka: EmbeddedBroker, run: Run) -> None:
    kafka.create_topic("orders")
    for value in ("one", "two", "three"):
        kafka.produce("orders", value)
    kafka.client.admin.delete_records({TopicPartition("orders", 0): 2})
    run("topics", "delete", "orders")
    kafka.restart(kill=True)
    run("topics", "undelete", "orders")
    assert values(kafka, "orders") == [b"three"]
    kafka.restart(kill=True)
    assert values(kafka, "orders") == [b"three"]


@pytest.mark.parametrize("restarts", [False, True])
def test_committed_offsets_are_restored_unless_groups_have_newer_ones(
    kafka: EmbeddedBroker, run: Run, restarts: bool
) -> None:
    kafka.create_topic("orders", partitions=2)
    groups, topic_partitions = kafka.client.groups, [TopicPartition("orders", index) for index in (0, 1)]
    for group_id in ("billing", "shipping"):
        raise_errors(
            groups.commit_offsets(group_id, {topic_partitions[0]: 1, topic_partitions[1]: 2}).values()
        )
    run("topics", "delete", "orders")
    assert fetched(kafka, "billing") == {}
    if restarts:
        kafka.restart(kill=True)
    run("topics", "create", "orders", "--partitions", "1")
    raise_errors(kafka.client.groups.commit_offsets("shipping", {topic_partitions[0]: 7}).values())
    result = run("topics", "undelete", "orders", "--as", "orders-before")
    assert result.output == "orders-before: undeleted with 2 partitions and 4 committed offsets\n"
    before = {TopicPartition("orders-before", 0): 1, TopicPartition("orders-before", 1): 2}
    assert fetched(kafka, "billing") == before
    assert fetched(kafka, "shipping") == {**before, topic_partitions[0]: 7}
    if restarts:
        kafka.restart(kill=True)
        assert fetched(kafka, "billing") == before


def test_too_many_committed_offsets_are_not_kept(
    kafka: EmbeddedBroker, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_offsets, "OFFSETS_MAX", 1)
    kafka.create_topic("orders", partitions=2)
    offsets = {TopicPartition("orders", index): 1 for index in (0, 1)}
    raise_errors(kafka.client.groups.commit_offsets("billing", offsets).values())
    run("topics", "delete", "orders")
    assert json.loads(run("topics", "undelete", "orders", "--json").stdout)["offsets"] == 0
    assert fetched(kafka, "billing") == {}


def fetched(kafka: EmbeddedBroker, group_id: str) -> dict[TopicPartition, int]:
    return {tp: each.offset for tp, each in kafka.client.groups.offsets(group_id).items()}


@pytest.mark.usefixtures("deleted")
def test_the_name_is_free_immediately_and_the_old_topic_can_be_undeleted_under_another(
    kafka: EmbeddedBroker, run: Run
) -> None:
    run("topics", "create", "orders")
    kafka.produce("orders", "new", partition=0)
    taken = run("topics", "undelete", "orders")
    assert (taken.exit_code, "already exists" in taken.output) == (1, True)
    assert run("topics", "undelete", "orders", "--as", "orders-before").exit_code == 0
    assert values(kafka, "orders-before") == [b"one", b"two", b"three"]
    assert values(kafka, "orders") == [b"new"]
    kafka.restart()
    assert values(kafka, "orders-before") == [b"one", b"two", b"three"]
    assert values(kafka, "orders") == [b"new"]


@pytest.mark.usefixtures("deleted")
def test_the_id_selects_among_deleted_topics_of_one_name(kafka: EmbeddedBroker, run: Run) -> None:
    run("topics", "create", "orders")
    kafka.produce("orders", "second", partition=0)
    run("topics", "delete", "orders")
    result = run("topics", "undelete", "orders")
    assert (result.exit_code, "select one by its id" in result.output) == (1, True)
    table = [line.split() for line in run("topics", "trash").output.splitlines()[1:]]
    topic_id = next(row[1] for row in table if row[2] == "1")
    assert run("topics", "undelete", "orders", "--id", topic_id).exit_code == 0
    assert values(kafka, "orders") == [b"second"]
    assert [each["partitions"] for each in trash(run)] == [2]


@pytest.mark.usefixtures("deleted")
def test_a_purged_topic_is_removed_from_disk_and_cannot_be_undeleted(kafka: EmbeddedBroker, run: Run) -> None:
    result = run("topics", "purge", "orders")
    assert (result.exit_code, result.output) == (0, "orders: purged\n")
    assert trash(run) == []
    assert run("topics", "undelete", "orders").exit_code == 3
    assert run("topics", "purge", "--all", "--json").output == "[]\n"
    kafka.restart()
    assert list(kafka.directory.glob("orders-*")) == []
    assert list(kafka.directory.glob("*-delete")) == []


@pytest.mark.parametrize("command", ["undelete", "purge"])
def test_a_topic_that_is_not_in_the_trash_is_not_found(run: Run, command: str) -> None:
    run("topics", "create", "orders")
    result = run("topics", command, "orders")
    assert result.exit_code == 3
    assert result.stderr == (
        "error: UNKNOWN_TOPIC_OR_PARTITION: There is no topic 'orders' in the trash.\n"
        "  try: 'barnabas topics trash' shows the topics in the trash\n"
    )


def test_without_trash_a_topic_is_removed_immediately() -> None:
    with EmbeddedBroker(settings={"barnabas.trash.retention.ms": "0"}) as kafka:
        kafka.create_topic("orders")
        kafka.delete_topic("orders")
        assert kafka.client.admin.describe_trash() == []
        assert list(kafka.directory.glob("*-stray")) == []


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("purge",), "either topics or --all"),
        (("purge", "x", "--all"), "either topics or --all"),
        (("purge", "x", "y", "--id", "a" * 22), "requires exactly one topic"),
        (("undelete", "x", "--id", "nonsense"), "not a valid topic id"),
    ],
)
def test_invalid_arguments_are_usage_errors(run: Run, command: tuple[str, ...], words: str) -> None:
    result = run("topics", *command)
    assert (result.exit_code, words in result.output) == (2, True)


def test_offsets_return_although_the_undeletion_takes_longer_than_its_request(
    kafka: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(trashed: TrashedLogs, *arguments: Any) -> Any:
        assert has_timed_out.wait(30)
        return reopen(trashed, *arguments)

    has_timed_out, reopen = threading.Event(), TrashedLogs.reopen
    partition = TopicPartition("orders", 0)
    kafka.create_topic("orders")
    kafka.client.groups.commit_offsets("g", {partition: 7})
    kafka.delete_topic("orders")
    monkeypatch.setattr(TrashedLogs, "reopen", slow)
    with Wire(kafka.port) as wire:
        response = wire.ask(UndeleteTopicRequest("orders", timeout_ms=50), 0)
    assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
    has_timed_out.set()
    until(lambda: partition in kafka.client.groups.offsets("g"))
    assert kafka.client.groups.offsets("g")[partition].offset == 7
