"""`barnabas quotas`, against a broker."""

import json
from collections.abc import Callable

import pytest
from typer.testing import CliRunner, Result

from barnabas.cli.main import app
from barnabas.testing import EmbeddedBroker

Run = Callable[..., Result]


@pytest.fixture
def run(kafka: EmbeddedBroker) -> Run:
    def invoke(*command: str) -> Result:
        environment = {"BARNABAS_BOOTSTRAP": kafka.bootstrap, "COLUMNS": "200"}
        return CliRunner().invoke(app, ["quotas", *command], env=environment)

    return invoke


def test_quotas_are_set_listed_and_removed(run: Run) -> None:
    assert run("set", "user=alice", "client-id", "producer_byte_rate=1000000").output == (
        "client-id user=alice: set producer_byte_rate=1000000\n"
    )
    run("set", "user", "request_percentage=12.5", "consumer_byte_rate=5000")
    lines = run("list").output.splitlines()
    assert [line.split() for line in lines] == [
        ["entity", "quota", "value"],
        ["client-id", "user=alice", "producer_byte_rate", "1000000"],
        ["user", "consumer_byte_rate", "5000"],
        ["user", "request_percentage", "12.5"],
    ]
    assert run("remove", "user", "request_percentage").output == "user: removed request_percentage\n"
    assert run("remove", "user=alice", "client-id").exit_code == 0
    assert json.loads(run("list", "--json").stdout) == [
        {"entity": {"user": None}, "quotas": {"consumer_byte_rate": 5000.0}}
    ]


def test_output_as_json_and_validation_without_changes(run: Run) -> None:
    done = run("set", "ip=10.0.0.1", "connection_creation_rate=5", "--validate-only", "--json")
    assert json.loads(done.stdout) == {
        "entity": {"ip": "10.0.0.1"},
        "done": "could be set",
        "quotas": {"connection_creation_rate": 5.0},
    }
    assert json.loads(run("list", "ip=10.0.0.1", "--json").stdout) == []


@pytest.mark.parametrize(
    ("command", "exit_code", "words"),
    [
        (("set", "user=alice"), 2, "no quota specified"),
        (("set", "producer_byte_rate=5"), 2, "no quota entity specified"),
        (("set", "user=alice", "producer_byte_rate=many"), 2, "invalid quota"),
        (("set", "user=a", "user=b", "producer_byte_rate=5"), 2, "given twice"),
        (("list", "nobody"), 2, "is not a quota entity"),
        (("remove", "user=alice"), 3, "user=alice has no quotas"),
        (("set", "user=alice", "no_such_rate=5"), 1, "Invalid quota 'no_such_rate'"),
    ],
)
def test_invalid_quotas_are_explained(run: Run, command: tuple[str, ...], exit_code: int, words: str) -> None:
    result = run(*command)
    assert result.exit_code == exit_code
    assert words in result.stderr
