"""Checks the output of an application, as read from its logs, for exactly one copy of each input. No IO.

An input is its number, "3-17" for the eighteenth record of partition 3. An output begins with the number of its
input. A word "ID/COUNT" may follow: the output is one of COUNT outputs of the transaction ID, which names one
attempt.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.verify_eos.transaction_outcomes import TransactionOutcome

_OUTPUT = re.compile(rb"(\d{1,9})-(\d{1,18})(?: (\S+)/(\d{1,9}))?(?!\S)")


class Number(NamedTuple):
    """The number of an input; prints as it is written."""

    partition: int
    sequence: int

    def __str__(self) -> str:
        return f"{self.partition}-{self.sequence}"


class Output(NamedTuple):
    """An output record as a client read it; `number` is None if it names no input."""

    tp: TopicPartition
    offset: int
    number: Number | None
    transaction: bytes | None = None
    transaction_size: int = 0  #: outputs in the transaction, as the application says

    def __str__(self) -> str:
        return f"{self.number} ({self.tp} offset {self.offset})"


class ReadLog(NamedTuple):
    """A partition of the output: the content of its log, and the end of the committed records."""

    outcomes: Mapping[int, TransactionOutcome]
    read_up_to: int


#: Labels of the kinds of faults.
KINDS: Mapping[str, str] = {
    "misnumbered": "inputs that do not follow the previous one",
    "lost": "inputs without an output",
    "duplicated": "duplicate outputs of an input",
    "reordered": "outputs after those of later inputs",
    "torn": "transactions that can be read only in part",
    "aborted": "outputs that are read although they are not committed",
    "hidden": "committed outputs that are not read",
    "unknown": "outputs without an input",
}


@dataclass
class Findings:
    """The number of checked inputs and outputs, and every fault by its kind."""

    inputs_count: int
    outputs_count: int
    transactions_count: int  #: named by the outputs
    faults: dict[str, list[str]] = field(default_factory=lambda: {kind: [] for kind in KINDS})

    @property
    def is_exactly_once(self) -> bool:
        """Whether there are no faults."""
        return not any(self.faults.values())


def read_number(value: bytes | None) -> Number | None:
    """Return the number at the start of a value."""
    match = _OUTPUT.match(value or b"")
    return Number(int(match[1]), int(match[2])) if match else None


def read_output(tp: TopicPartition, offset: int, value: bytes | None) -> Output:
    """Parse an output's value."""
    match = _OUTPUT.match(value or b"")
    if not match:
        return Output(tp, offset, None)
    number = Number(int(match[1]), int(match[2]))
    return Output(tp, offset, number, match[3], int(match[4] or 0))


def check_exactly_once(
    inputs: Mapping[TopicPartition, Sequence[Number | None]],
    outputs: Sequence[Output],
    logs: Mapping[TopicPartition, ReadLog],
) -> Findings:
    """Return all faults of an output, read committed, compared with its input and its logs.

    :param inputs: The numbers in each partition of the input, in log order.
    :param outputs: The output by partition, in log order.
    """
    known = {number for numbers in inputs.values() for number in numbers if number is not None}
    transactions = {output.transaction for output in outputs if output.transaction is not None}
    findings = Findings(sum(map(len, inputs.values())), len(outputs), len(transactions))
    checks: dict[str, Callable[[], Iterator[object]]] = {
        "misnumbered": lambda: _misnumbered(inputs),
        "lost": lambda: iter(sorted(known - {output.number for output in outputs if output.number})),
        "duplicated": lambda: _duplicated(outputs),
        "reordered": lambda: _reordered(outputs),
        "torn": lambda: _torn(outputs),
        "aborted": lambda: _aborted(outputs, logs),
        "hidden": lambda: _hidden(outputs, logs),
        "unknown": lambda: (output for output in outputs if output.number not in known),
    }
    assert checks.keys() == KINDS.keys()
    for kind, check in checks.items():
        findings.faults[kind] = [str(fault) for fault in check()]
    return findings


def _misnumbered(inputs: Mapping[TopicPartition, Collection[Number | None]]) -> Iterator[str]:
    for tp, numbers in inputs.items():
        before: Number | None = None
        for number in numbers:
            follows = number is not None and number.partition == tp.partition
            if not follows or (before and number and number.sequence != before.sequence + 1):
                yield f"{number} behind {before} ({tp})"
            before = number


def _duplicated(outputs: Sequence[Output]) -> Iterator[Output]:
    seen: set[Number] = set()
    for output in outputs:
        if output.number is not None and output.number in seen:
            yield output
        elif output.number is not None:
            seen.add(output.number)


def _reordered(outputs: Sequence[Output]) -> Iterator[str]:
    """Yield inputs of a partition that are out of order within a partition of the output; repeated outputs count only
    as duplicates.
    """
    seen: set[Number] = set()
    latest: dict[tuple[TopicPartition, int], Number] = {}
    for output in outputs:
        if output.number is None or output.number in seen:
            continue
        seen.add(output.number)
        lane = (output.tp, output.number.partition)
        before = latest.setdefault(lane, output.number)
        if output.number < before:
            yield f"{output} behind {before}"
        else:
            latest[lane] = output.number


def _torn(outputs: Sequence[Output]) -> Iterator[str]:
    sizes: dict[bytes, int] = {}
    output_counts: Counter[bytes] = Counter()
    for output in outputs:
        if output.transaction is not None:
            sizes[output.transaction] = output.transaction_size
            output_counts[output.transaction] += 1
    for transaction, size in sizes.items():
        if output_counts[transaction] != size:
            yield f"{transaction.decode(errors='replace')}: {output_counts[transaction]} outputs of {size}"


def _aborted(outputs: Sequence[Output], logs: Mapping[TopicPartition, ReadLog]) -> Iterator[str]:
    for output in outputs:
        transaction_outcome = logs[output.tp].outcomes.get(output.offset)
        if transaction_outcome is not TransactionOutcome.COMMITTED:
            yield f"{output}: {transaction_outcome.value if transaction_outcome else 'not in the log'}"


def _hidden(outputs: Sequence[Output], logs: Mapping[TopicPartition, ReadLog]) -> Iterator[str]:
    seen: defaultdict[TopicPartition, set[int]] = defaultdict(set)
    for output in outputs:
        seen[output.tp].add(output.offset)
    for tp, log in logs.items():
        for offset, transaction_outcome in log.outcomes.items():
            if (
                transaction_outcome is TransactionOutcome.COMMITTED
                and offset < log.read_up_to
                and offset not in seen[tp]
            ):
                yield f"{tp} offset {offset}"
