"""Badly balanced replicas, the plan that the job `usage` makes for them, and where they are afterwards."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from typer.testing import CliRunner

from barnabas.base.ids import TopicPartition
from barnabas.cli.main import app
from barnabas.client.blocking import BlockingClient
from barnabas.reports.usage.balancing import Home
from barnabas.testing import EmbeddedBroker
from support.source_rows import WAIT_S, producer

PLAN_FILE, ANY_DIRECTORY = "reassignment.json", "any"
MOVES_S = 60
#: Record counts of the partitions; two have nearly all.
RECORDS_COUNTS = (300, 5, 200, 5)


class Plan(NamedTuple):
    """The job's output."""

    file: Path
    #: Rows of the file.
    partitions: list[dict[str, Any]]
    #: The planned directory of the only replica of each moved partition.
    targets: dict[TopicPartition, list[Home]]


@contextmanager
def two_directories(home: Path) -> Iterator[EmbeddedBroker]:
    """Run a broker that places partitions alternately, so that one directory has nearly all records of `fill`."""
    with EmbeddedBroker({"log.dirs": f"{home / 'a'},{home / 'b'}", "log.retention.ms": "-1"}) as running:
        yield running


def fill(bootstrap: str, topic: str) -> None:
    writer = producer(bootstrap)
    for partition, count in enumerate(RECORDS_COUNTS):
        for number in range(count):
            writer.produce(topic, b"%d" % number + b"x" * 100, b"%d" % number, partition)
    assert writer.flush(WAIT_S) == 0


def command(*arguments: str) -> str:
    """Return the output of a barnabas command, which must succeed."""
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def planned(bootstrap: str, topic: str, report: Path) -> Plan | None:
    """Return the plan that `barnabas jobs usage` writes; None if no move is worthwhile."""
    options = ["--keys", "0", "--report", str(report), "--json"]
    printed = json.loads(command("jobs", "usage", "-b", bootstrap, "-t", topic, *options))
    targets = {
        TopicPartition(each["topic"], each["partition"]): [Home(**each["to"])] for each in printed["moves"]
    }
    file = report / PLAN_FILE
    if not file.exists():
        assert not targets
        return None
    partitions = json.loads(file.read_text())["partitions"]
    assert {TopicPartition(each["topic"], each["partition"]) for each in partitions} == targets.keys()
    return Plan(file, partitions, targets)


def carry_out(bootstrap: str, plan: Plan) -> None:
    """Execute each row of the file with the commands that reassign partitions and move replicas between
    directories.
    """
    wait = ("--wait", str(MOVES_S), "-b", bootstrap)
    for each in plan.partitions:
        tp, brokers = f"{each['topic']}:{each['partition']}", [str(node) for node in each["replicas"]]
        command("reassignments", "start", f"{tp}={','.join(brokers)}", *wait)
        for broker, directory in zip(brokers, each["log_dirs"], strict=True):
            if directory != ANY_DIRECTORY:
                command("log-dirs", "move", directory, tp, "--broker", broker, *wait)


def homes(bootstrap: str, topic: str) -> dict[TopicPartition, list[Home]]:
    """Return the current replicas of each partition, without future replicas."""
    found: dict[TopicPartition, list[Home]] = {}
    with BlockingClient(bootstrap) as client:
        client.admin.describe_topics([topic])
        for node in sorted(client.cluster.metadata.nodes):
            for each in client.admin.describe_log_dirs(node):
                for tp, replica in each.replicas.items():
                    if tp.topic == topic and not replica.is_future:
                        found.setdefault(tp, []).append(Home(node, each.path))
    return found
