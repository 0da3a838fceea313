"""Kafka's own tools for elections, reassignments, features, the quorum and brokers."""

import json
from pathlib import Path
from typing import Any

import pytest
from interop.brokers import Broker
from interop.reference import tool


class Run:
    """Runs a tool against the broker under test; returns its output, whether it failed or not."""

    def __init__(self, broker: Broker) -> None:
        self._server = ("--bootstrap-server", broker.bootstrap)
        self.nodes = sorted(broker.nodes)

    def __call__(self, name: str, *arguments: str | Path, fails: bool | None = False) -> str:
        behind = name == "kafka-cluster"  # its options follow its commands
        done = tool(name, *(arguments + self._server if behind else self._server + arguments), check=False)
        printed = done.stdout + done.stderr
        assert fails is None or (done.returncode != 0) == fails, printed
        return printed


@pytest.fixture
def run(broker: Broker) -> Run:
    return Run(broker)


def json_file(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def moves(path: Path, *targets: tuple[str, int, list[int]]) -> Path:
    """Write a plan in the format of kafka-reassign-partitions."""
    partitions = [
        {"topic": name, "partition": index, "replicas": replicas} for name, index, replicas in targets
    ]
    return json_file(path, {"version": 1, "partitions": partitions})


# kafka-leader-election


def test_a_partition_with_its_preferred_leader_needs_no_election(run: Run, topic: str) -> None:
    partition = ("--topic", topic, "--partition", "0")
    assert "Valid replica already elected" in run(
        "kafka-leader-election", "--election-type", "PREFERRED", *partition
    )
    assert "Valid replica already elected" in run(
        "kafka-leader-election", "--election-type", "UNCLEAN", *partition
    )


def test_elections_for_all_partitions_are_not_needed(run: Run, topic: str) -> None:
    printed = run("kafka-leader-election", "--election-type", "PREFERRED", "--all-topic-partitions")
    assert "rror" not in printed


def test_an_election_for_unknown_partitions_fails_only_for_them(run: Run, topic: str, tmp_path: Path) -> None:
    partitions = [{"topic": topic, "partition": index} for index in (0, 7)]
    path = json_file(tmp_path / "elections.json", {"partitions": partitions})
    printed = run(
        "kafka-leader-election", "--election-type", "PREFERRED", "--path-to-json-file", path, fails=True
    )
    assert f"{topic}-7" in printed
    assert "UnknownTopicOrPartitionException" in printed


# kafka-reassign-partitions


@pytest.mark.cluster
def test_a_reassignment_is_planned_executed_verified_and_listed(run: Run, topic: str, tmp_path: Path) -> None:
    nodes = run.nodes
    topics = json_file(tmp_path / "topics.json", {"version": 1, "topics": [{"topic": topic}]})
    plan = ("--topics-to-move-json-file", topics, "--broker-list", ",".join(map(str, nodes)), "--generate")
    planned = run("kafka-reassign-partitions", *plan)
    [proposed] = json.loads(planned.splitlines()[-1])["partitions"]
    assert (proposed["topic"], proposed["partition"], sorted(proposed["replicas"])) == (topic, 0, nodes)
    path = moves(tmp_path / "moves.json", (topic, 0, nodes))
    executed = run("kafka-reassign-partitions", "--reassignment-json-file", path, "--execute")
    assert "Successfully started partition reassignment" in executed
    verified = run("kafka-reassign-partitions", "--reassignment-json-file", path, "--verify")
    assert f"Reassignment of partition {topic}-0 is completed." in verified
    assert "No partition reassignments found." in run("kafka-reassign-partitions", "--list")


def test_a_throttle_is_set_with_a_reassignment_and_removed_by_verify(
    run: Run, topic: str, tmp_path: Path
) -> None:
    path = moves(tmp_path / "moves.json", (topic, 0, run.nodes))
    throttled = ("--reassignment-json-file", path, "--execute", "--throttle", "1000000")
    assert "throttle limit was set to 1000000 B/s" in run("kafka-reassign-partitions", *throttled)
    verified = run("kafka-reassign-partitions", "--reassignment-json-file", path, "--verify")
    assert "Clearing broker-level throttles" in verified
    assert "Clearing topic-level throttles" in verified


def test_a_reassignment_that_is_not_in_progress_cannot_be_cancelled(
    run: Run, topic: str, tmp_path: Path
) -> None:
    path = moves(tmp_path / "moves.json", (topic, 0, run.nodes))
    cancelled = run("kafka-reassign-partitions", "--reassignment-json-file", path, "--cancel")
    assert "None of the specified partition reassignments are active." in cancelled


def test_an_unknown_broker_gets_no_replicas(run: Run, topic: str, tmp_path: Path) -> None:
    path = moves(tmp_path / "moves.json", (topic, 0, [77]))
    printed = run("kafka-reassign-partitions", "--reassignment-json-file", path, "--execute", fails=True)
    assert "77" in printed


# kafka-metadata-quorum


def test_the_quorum_is_described(run: Run) -> None:
    status = run("kafka-metadata-quorum", "describe", "--status")
    output = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    leader = int(output["LeaderId"])
    assert leader in run.nodes
    assert int(output["HighWatermark"]) > 0
    assert f'"id": {leader}' in output["CurrentVoters"]
    assert output["CurrentObservers"].strip() == "[]"


def test_the_voters_are_described_with_their_state(run: Run) -> None:
    lines = run("kafka-metadata-quorum", "describe", "--replication").splitlines()
    header, *rows = (line.split() for line in lines if line.strip() and "WARN" not in line)
    assert header[:4] == ["NodeId", "DirectoryId", "LogEndOffset", "Lag"]
    assert {int(row[0]) for row in rows} <= set(run.nodes)
    [leader] = [row for row in rows if row[-1] == "Leader"]
    assert leader[3] == "0"


def test_an_unknown_voter_cannot_be_removed(run: Run) -> None:
    stranger = ("--controller-id", "77", "--controller-directory-id", "AAECAwQFBgcICQoLDA0ODw")
    printed = run("kafka-metadata-quorum", "remove-controller", *stranger, fails=True)
    assert "VoterNotFoundException" in printed


# kafka-features, kafka-cluster


def test_features_are_described(run: Run) -> None:
    printed = run("kafka-features", "describe")
    [line] = [line for line in printed.splitlines() if "metadata.version" in line]
    assert "FinalizedVersionLevel: 4.3-IV0" in line
    assert "SupportedMinVersion: 3.3-IV3" in line


def test_a_feature_at_its_level_can_be_upgraded_to_the_same(run: Run) -> None:
    printed = run("kafka-features", "upgrade", "--feature", "metadata.version=30")
    assert "metadata.version was upgraded to 30." in printed


def test_an_invalid_feature_level_changes_nothing(run: Run) -> None:
    printed = run("kafka-features", "downgrade", "--feature", "metadata.version=29", fails=True)
    assert "Could not downgrade metadata.version to 29" in printed
    printed = run("kafka-features", "upgrade", "--feature", "nope=1", fails=True)
    assert "nope" in printed


def test_an_unknown_broker_cannot_be_unregistered(run: Run) -> None:
    printed = run("kafka-cluster", "unregister", "--id", "77", fails=None)
    assert "77" in printed
    assert "regist" in printed
