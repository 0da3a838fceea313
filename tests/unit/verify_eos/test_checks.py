"""Checks of an output: a correct one passes, and each fault is found."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.ids import TopicPartition
from barnabas.verify_eos.checks import (
    KINDS,
    Findings,
    Number,
    Output,
    ReadLog,
    check_exactly_once,
    read_number,
    read_output,
)
from barnabas.verify_eos.transaction_outcomes import TransactionOutcome

IN, OUT = "in", "out"
TRANSACTION_SIZE = 5


class Run:
    """The output of a correct application: every input once, five to a transaction."""

    def __init__(self, partitions_count: int = 2, inputs_count: int = 20) -> None:
        self.inputs: dict[TopicPartition, list[Number | None]] = {}
        self.outputs: list[Output] = []
        self.logs: dict[TopicPartition, ReadLog] = {}
        for partition in range(partitions_count):
            tp = TopicPartition(IN, partition)
            self.inputs[tp] = [Number(partition, sequence) for sequence in range(inputs_count)]
            self._write(TopicPartition(OUT, partition), partition, inputs_count)

    def _write(self, tp: TopicPartition, partition: int, inputs_count: int) -> None:
        """Offsets advance by two: after each output there is an aborted one."""
        outcomes: dict[int, TransactionOutcome] = {}
        for sequence in range(inputs_count):
            offset, transaction = 2 * sequence, b"%d.%d" % (partition, sequence // TRANSACTION_SIZE)
            self.outputs.append(
                Output(tp, offset, Number(partition, sequence), transaction, TRANSACTION_SIZE)
            )
            outcomes |= {offset: TransactionOutcome.COMMITTED, offset + 1: TransactionOutcome.ABORTED}
        self.logs[tp] = ReadLog(outcomes, 2 * inputs_count)

    def check(self) -> Findings:
        return check_exactly_once(self.inputs, self.outputs, self.logs)

    def faults(self) -> dict[str, list[str]]:
        return {kind: found for kind, found in self.check().faults.items() if found}

    def without_transactions(self) -> "Run":
        """Return the same output without transactions."""
        self.outputs = [each._replace(transaction=None, transaction_size=0) for each in self.outputs]
        return self

    def remove_output(self, output: Output) -> None:
        """Remove an output."""
        self.outputs.remove(output)
        outcomes = dict(self.logs[output.tp].outcomes)
        del outcomes[output.offset]
        self.logs[output.tp] = self.logs[output.tp]._replace(outcomes=outcomes)


def test_a_correct_run_has_no_faults() -> None:
    findings = Run().check()
    assert findings.is_exactly_once
    assert (findings.inputs_count, findings.outputs_count, findings.transactions_count) == (40, 40, 8)
    assert Run().without_transactions().check().is_exactly_once
    assert Run(partitions_count=1, inputs_count=0).check().is_exactly_once


def test_a_lost_output_is_found() -> None:
    run = Run().without_transactions()
    run.remove_output(run.outputs[7])
    assert run.faults() == {"lost": ["0-7"]}


def test_a_duplicate_output_is_found_and_is_not_an_order_fault() -> None:
    run = Run().without_transactions()
    run.outputs.append(run.outputs[3]._replace(offset=38))
    assert run.faults() == {"duplicated": ["0-3 (out-0 offset 38)"]}


def test_a_duplicate_in_another_partition_is_found() -> None:
    run = Run().without_transactions()
    run.outputs.append(run.outputs[3]._replace(tp=TopicPartition(OUT, 1), offset=38))
    assert run.faults() == {"duplicated": ["0-3 (out-1 offset 38)"]}


def test_reordered_outputs_are_found() -> None:
    run = Run().without_transactions()
    third, fourth = run.outputs[3], run.outputs[4]
    run.outputs[3:5] = [third._replace(number=fourth.number), fourth._replace(number=third.number)]
    assert run.faults() == {"reordered": ["0-3 (out-0 offset 8) behind 0-4"]}


def test_a_partially_visible_transaction_is_found() -> None:
    run = Run()
    run.remove_output(run.outputs[7])
    assert run.faults() == {"lost": ["0-7"], "torn": ["0.1: 4 outputs of 5"]}


def test_a_transaction_written_twice_is_found() -> None:
    run = Run()
    run.outputs += [each._replace(offset=38) for each in run.outputs[:5]]
    assert set(run.faults()) == {"duplicated", "torn"}


@pytest.mark.parametrize(
    ("outcome", "text"),
    [(TransactionOutcome.ABORTED, "aborted"), (TransactionOutcome.OPEN, "open"), (None, "not in the log")],
)
def test_an_uncommitted_output_is_found(outcome: TransactionOutcome | None, text: str) -> None:
    run = Run()
    tp = TopicPartition(OUT, 0)
    outcomes = dict(run.logs[tp].outcomes)
    del outcomes[6]
    run.logs[tp] = ReadLog(outcomes | ({6: outcome} if outcome else {}), 40)
    assert run.faults() == {"aborted": [f"0-3 (out-0 offset 6): {text}"]}


def test_a_committed_output_that_is_not_read_is_found_up_to_the_read_position() -> None:
    run = Run().without_transactions()
    run.outputs.remove(run.outputs[3])
    assert run.faults() == {"lost": ["0-3"], "hidden": ["out-0 offset 6"]}
    tp = TopicPartition(OUT, 0)
    run.logs[tp] = run.logs[tp]._replace(read_up_to=6)
    assert set(run.faults()) == {"lost"}


def test_an_output_without_input_is_found() -> None:
    run = Run().without_transactions()
    run.outputs[-1] = run.outputs[-1]._replace(number=Number(1, 99))
    run.outputs.append(Output(TopicPartition(OUT, 0), 38, None))
    assert run.faults() == {
        "lost": ["1-19"],
        "unknown": ["1-99 (out-1 offset 38)", "None (out-0 offset 38)"],
    }


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda numbers: numbers.insert(5, Number(0, 4)), "0-4 behind 0-4 (in-0)"),
        (lambda numbers: numbers.insert(5, None), "None behind 0-4 (in-0)"),
        (lambda numbers: numbers.append(Number(1, 3)), "1-3 behind 0-19 (in-0)"),
        (lambda numbers: numbers.append(Number(0, 21)), "0-21 behind 0-19 (in-0)"),
    ],
)
def test_inputs_must_be_numbered_to_be_checked(
    change: Callable[[list[Number | None]], None], fault: str
) -> None:
    run = Run()
    change(run.inputs[TopicPartition(IN, 0)])
    assert fault in run.faults()["misnumbered"]


def test_inputs_deleted_by_retention_are_not_required() -> None:
    run = Run().without_transactions()
    run.inputs[TopicPartition(IN, 0)] = [Number(0, 100)]
    run.outputs = [run.outputs[0]._replace(number=Number(0, 100)), *run.outputs[20:]]
    run.logs[TopicPartition(OUT, 0)] = ReadLog({0: TransactionOutcome.COMMITTED}, 1)
    assert run.faults() == {}


@given(
    st.integers(1, 4), st.integers(1, 30), st.integers(0, 2**32), st.sampled_from(["lose", "double", "turn"])
)
def test_any_single_fault_is_found(partitions: int, inputs: int, seed: int, what: str) -> None:
    run, rng = Run(partitions, inputs).without_transactions(), random.Random(seed)
    assert run.check().is_exactly_once
    index = rng.randrange(len(run.outputs))
    output = run.outputs[index]
    if what == "lose":
        run.outputs.pop(index)
        assert {"lost", "hidden"} == set(run.faults())
    elif what == "double":
        run.outputs.insert(rng.randint(index, len(run.outputs)), output)
        assert {"duplicated"} == set(run.faults())
    elif index and run.outputs[index - 1].tp == output.tp:
        before = run.outputs[index - 1]
        run.outputs[index - 1 : index + 1] = [
            before._replace(number=output.number),
            output._replace(number=before.number),
        ]
        assert {"reordered"} == set(run.faults())


@pytest.mark.parametrize(
    ("value", "number", "transaction", "size"),
    [
        (b"3-17", Number(3, 17), None, 0),
        (b"3-17 tx9/10", Number(3, 17), b"tx9", 10),
        (b"3-17 a/b/10", Number(3, 17), b"a/b", 10),
        (b"3-17 tx9/10 and more", Number(3, 17), b"tx9", 10),
        (b"3-17 anything else", Number(3, 17), None, 0),
        (b"3-17\nmore", Number(3, 17), None, 0),
        (b"3-17x", None, None, 0),
        (b"-3-17", None, None, 0),
        (b"3-", None, None, 0),
        (b"", None, None, 0),
        (None, None, None, 0),
    ],
)
def test_values_have_source_and_number(
    value: bytes | None, number: Number | None, transaction: bytes | None, size: int
) -> None:
    tp = TopicPartition(OUT, 0)
    assert read_number(value) == number
    assert read_output(tp, 5, value) == Output(tp, 5, number, transaction, size)


def test_every_kind_of_fault_is_described() -> None:
    assert KINDS.keys() == Run().check().faults.keys()
