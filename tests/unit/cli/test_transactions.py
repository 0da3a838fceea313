"""`barnabas transactions` against a fake coordinator."""

import json

import pytest

from unit.cli.conftest import Run
from unit.client.fake_broker import FakeBroker
from unit.client.fake_coordinator import FakeCoordinator, serve_transactions


@pytest.fixture(autouse=True)
def _transactions(broker: FakeBroker) -> None:
    FakeCoordinator(broker)
    serve_transactions(broker)


def lines(run: Run, *arguments: str) -> list[list[str]]:
    result = run("transactions", *arguments)
    assert result.exit_code == 0, result.output
    return [line.split() for line in result.stdout.splitlines()]


def test_transactions_and_producers_are_listed(run: Run) -> None:
    assert lines(run, "list")[1:] == [["a", "7", "Ongoing"], ["b", "8", "Empty"]]
    shown = lines(run, "describe", "a")[1]
    assert shown == ["a", "Ongoing", "7", "2", "60000", "1970-01-01T00:00:01.000+00:00", "1", "t-0,", "t-1"]
    assert lines(run, "producers", "t:1")[2] == ["7", "2", "4", "1970-01-01T00:00:01.000+00:00", "3", "7"]
    described = json.loads(run("transactions", "describe", "a", "--json").stdout)
    assert described["partitions"][1] == {"topic": "t", "partition": 1}


def test_a_hanging_transaction_is_aborted(run: Run) -> None:
    [line] = lines(run, "abort", "t:1", "--start-offset", "7")
    assert " ".join(line) == "t-1: aborted the transaction of producer 7"
    result = run("transactions", "abort", "t:1", "--start-offset", "5")
    assert (result.exit_code, "no open transaction" in result.stderr) == (1, True)


def test_a_partition_must_be_named(run: Run) -> None:
    result = run("transactions", "producers", "t")
    assert (result.exit_code, "t:0" in result.stderr) == (2, True)
