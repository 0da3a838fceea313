"""`barnabas elections`, `reassignments`, `features`, `quorum` against a broker."""

import json
from collections.abc import Callable

import pytest
from typer.testing import CliRunner, Result

from barnabas.base.ids import uuid_to_text
from barnabas.cli.main import app
from barnabas.testing import EmbeddedBroker
from support.control import SECOND, add_broker, remove_leader

Run = Callable[..., Result]


@pytest.fixture
def run(kafka: EmbeddedBroker) -> Run:
    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(app, arguments, env={"BARNABAS_BOOTSTRAP": kafka.bootstrap})

    return invoke


def done(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def rows(result: Result) -> list[list[str]]:
    return [line.split() for line in done(result).splitlines()[1:]]


@pytest.mark.parametrize(
    "command",
    [
        "topics create t --partitions 99999999999",
        "topics create t --replication-factor 99999",
        "topics add-partitions t --total 99999999999",
        "elections t:99999999999",
    ],
)
def test_a_number_out_of_range_is_a_usage_error(run: Run, command: str) -> None:
    refused = run(*command.split())
    assert refused.exit_code == 2
    assert "a number is too large for its field in the Kafka protocol" in refused.output


def test_elections_are_held_where_needed(kafka: EmbeddedBroker, run: Run) -> None:
    kafka.create_topic("t", partitions=2)
    assert done(run("elections")) == ""
    remove_leader(kafka, "t", 1)
    assert done(run("elections", "t")) == "t-0: not needed\nt-1: elected\n"
    remove_leader(kafka, "t", 1)
    assert json.loads(done(run("elections", "--unclean", "--json"))) == [
        {"topic": "t", "partition": 1, "error": None, "message": None}
    ]
    assert kafka.server.broker.replicas.partition("t", 1).is_leader


def test_an_election_for_a_missing_partition_is_not_found(kafka: EmbeddedBroker, run: Run) -> None:
    kafka.create_topic("t")
    for tp in ("t:7", "gone", "gone:0"):
        result = run("elections", tp)
        assert result.exit_code == 3, result.output
        assert "error:" in result.stderr
    assert run("elections", "t:first").exit_code == 2


def test_a_reassignment_is_started_listed_and_cancelled(kafka: EmbeddedBroker, run: Run) -> None:
    own = kafka.server.broker.broker_id
    kafka.create_topic("t", partitions=2)
    add_broker(kafka)
    assert done(run("reassignments", "start", f"t:0={SECOND},{own}")) == "t-0: moving\n"
    assert rows(run("reassignments", "list")) == [["t-0", f"{SECOND},{own}", f"{SECOND}"]]
    assert json.loads(done(run("reassignments", "list", "--json"))) == [
        {"topic": "t", "partition": 0, "replicas": [SECOND, own], "adding": [SECOND], "removing": []}
    ]
    assert (
        done(run("reassignments", "cancel", "t"))
        == "t-0: reassignment cancelled\nt-1: no reassignment in progress\n"
    )
    assert rows(run("reassignments", "list")) == []


@pytest.mark.parametrize(
    ("target", "exit_code", "word"),
    [
        ("t:0=77", 1, "broker 77"),
        ("t:9=1", 3, "not 9"),
        ("t:0", 2, "orders:0=2,3"),
        ("t:0=", 2, "orders:0=2,3"),
        ("t:zero=1", 2, "the partition must be a number"),
    ],
)
def test_an_invalid_target_is_rejected(
    kafka: EmbeddedBroker, run: Run, target: str, exit_code: int, word: str
) -> None:
    kafka.create_topic("t")
    result = run("reassignments", "start", target)
    assert result.exit_code == exit_code
    assert word in result.stderr


def test_the_replication_factor_can_be_kept(kafka: EmbeddedBroker, run: Run) -> None:
    own = kafka.server.broker.broker_id
    kafka.create_topic("t")
    add_broker(kafka)
    result = run("reassignments", "start", f"t={own},{SECOND}", "--keep-replication-factor")
    assert (result.exit_code, "replication factor of 1" in result.stderr) == (1, True)
    assert done(run("reassignments", "start", f"t={own},{SECOND}")) == "t-0: moving\n"


def test_features_are_listed_and_set(run: Run) -> None:
    listed = {row[0]: row[1:] for row in rows(run("features", "list"))}
    assert listed["metadata.version"] == ["30", "7", "to", "30"]
    assert {"name": "metadata.version", "supported": [7, 30], "level": 30} in json.loads(
        done(run("features", "list", "--json"))
    )
    assert done(run("features", "set", "metadata.version=30")) == "metadata.version: is at level 30\n"
    assert "could be at level 30" in done(run("features", "set", "metadata.version=30", "--validate-only"))


@pytest.mark.parametrize(
    ("arguments", "exit_code", "word"),
    [
        (["metadata.version=29"], 1, "without setting the upgrade type"),
        (["metadata.version=29", "--downgrade", "safe"], 1, "might delete metadata information"),
        (["metadata.version=29", "--downgrade", "unsafe"], 1, "not supported"),
        (["nope=1"], 1, "does not support this feature"),
        (["metadata.version"], 2, "key=value"),
        (["metadata.version=new"], 2, "the level must be a number"),
    ],
)
def test_an_invalid_feature_level_is_rejected(
    run: Run, arguments: list[str], exit_code: int, word: str
) -> None:
    result = run("features", "set", *arguments)
    assert result.exit_code == exit_code
    assert word in result.stderr


def test_the_quorum_is_shown(kafka: EmbeddedBroker, run: Run) -> None:
    node = kafka.server.broker
    first, *others = done(run("quorum", "describe")).splitlines()
    assert first == f"leader {node.broker_id}, epoch 1, high watermark {node.image.revision}"
    assert others[1].split()[:2] == [str(node.broker_id), "voter"]
    assert kafka.bootstrap in others[1]
    quorum = json.loads(done(run("quorum", "describe", "--json")))
    [voter] = quorum["nodes"]
    directory_id = node.image.brokers[str(node.broker_id)].log_dirs[0]
    assert (quorum["leader_id"], voter["directory_id"]) == (node.broker_id, uuid_to_text(directory_id))
