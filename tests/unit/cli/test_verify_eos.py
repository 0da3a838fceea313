"""`barnabas verify-eos` against a fake broker."""

import json
from typing import Any

import pytest
from typer.testing import Result

from barnabas.wire.records.control import EndTransactionMarker, encode_end_marker
from barnabas.wire.records.record import Record, encode_batch
from unit.cli.conftest import Run
from unit.client.fake_broker import FakeBroker

PRODUCER_ID = 7


def produce(run: Run, count: int, *options: str) -> Result:
    return run("verify-eos", "produce", "in", "--count", str(count), *options)


def write(broker: FakeBroker, partition: int, *values: str, transactional: bool = True) -> None:
    records = [Record(0, 0, None, value.encode()) for value in values]
    batch = encode_batch(records, producer_id=PRODUCER_ID, transactional=transactional)
    broker.append("out", partition, batch)


def end(broker: FakeBroker, partition: int, *, commit: bool) -> None:
    marker = EndTransactionMarker(PRODUCER_ID, 0, 0, commit, 0)
    broker.append("out", partition, encode_end_marker(marker))


@pytest.fixture
def inputs(broker: FakeBroker, run: Run) -> FakeBroker:
    """Write six inputs in two partitions, and create an output topic."""
    broker.create("in", 2)
    broker.create("out", 2)
    assert produce(run, 6).exit_code == 0
    return broker


def check(run: Run, *options: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code and the faults."""
    result = run("verify-eos", "check", "in", "out", "--json", *options)
    found = json.loads(result.stdout)
    assert found["exactly_once"] is (result.exit_code == 0)
    faults = {kind: fault["examples"] for kind, fault in found["faults"].items() if fault["count"]}
    return result.exit_code, faults


def copy(broker: FakeBroker) -> None:
    """Write the outputs of a correct application."""
    for partition in (0, 1):
        write(broker, partition, *(f"{partition}-{sequence} t{partition}/3" for sequence in range(3)))
        end(broker, partition, commit=True)


def test_inputs_are_numbered_in_each_partition(broker: FakeBroker, run: Run) -> None:
    broker.create("in", 2)
    assert json.loads(produce(run, 3, "--json").stdout) == {"topic": "in", "records": 3}
    assert produce(run, 2, "--rate", "1000").exit_code == 0
    assert [record.value for record in broker.records("in", 0)] == [b"0-0", b"0-1", b"0-2"]
    assert [record.value for record in broker.records("in", 1)] == [b"1-0", b"1-1"]


def test_an_output_with_each_input_once_passes(inputs: FakeBroker, run: Run) -> None:
    copy(inputs)
    assert check(run) == (0, {})
    assert check(run, "--wait", "10") == (0, {})
    result = run("verify-eos", "check", "in", "out")
    assert result.exit_code == 0
    assert "lost         0      inputs without an output" in result.stdout


def test_faults_are_described(inputs: FakeBroker, run: Run) -> None:
    write(inputs, 0, "0-0", "0-0", "0-2")
    end(inputs, 0, commit=True)
    result = run("verify-eos", "check", "in", "out")
    assert result.exit_code == 1
    expected = "out does not hold each of 6 inputs exactly once: 4 lost, 1 duplicated"
    assert expected in result.stderr
    assert "0-1, 1-0, 1-1 ..." in result.stdout


def test_waiting_ends_at_the_timeout(inputs: FakeBroker, run: Run) -> None:
    code, faults = check(run, "--wait", "1")
    assert code == 1
    assert len(faults["lost"]) == 6


def test_aborted_or_open_records_that_were_read_are_found(inputs: FakeBroker, run: Run) -> None:
    copy(inputs)
    write(inputs, 0, "0-0 x/1")  # the fake broker returns no aborted transactions
    end(inputs, 0, commit=False)
    write(inputs, 1, "1-0 y/1")
    code, faults = check(run)
    assert code == 1
    assert faults["aborted"] == ["0-0 (out-0 offset 4): aborted", "1-0 (out-1 offset 4): open"]
    assert set(faults) == {"aborted", "duplicated"}


def test_a_partially_visible_transaction_is_found(inputs: FakeBroker, run: Run) -> None:
    write(inputs, 0, "0-0 t/6", "0-1 t/6", "0-2 t/6")
    end(inputs, 0, commit=True)
    assert check(run) == (1, {"lost": ["1-0", "1-1", "1-2"], "torn": ["t: 3 outputs of 6"]})


def test_reordered_outputs_and_outputs_without_input_are_found(inputs: FakeBroker, run: Run) -> None:
    write(inputs, 0, "0-1", "0-0", "0-2", "9-9", transactional=False)
    write(inputs, 1, "1-0", "1-1", "1-2", transactional=False)
    assert check(run) == (
        1,
        {"reordered": ["0-0 (out-0 offset 1) behind 0-1"], "unknown": ["9-9 (out-0 offset 3)"]},
    )


def test_a_missing_topic_is_exit_code_3(inputs: FakeBroker, run: Run) -> None:
    assert run("verify-eos", "check", "in", "gone").exit_code == 3
