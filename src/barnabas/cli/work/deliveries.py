"""Which input lines of `barnabas produce` arrived, and which did not."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from barnabas.cli.failures import CommandError, classify_error
from barnabas.client.producer.accumulator import RecordMetadata
from barnabas.wire.errors import ErrorCode, KafkaError

#: Errors of single records: the lines after them may arrive.
_RECORD_ERRORS = frozenset(
    {
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
    }
)


class DeliveredRange(NamedTuple):
    """Records in one partition; offsets are -1 with acks=0, which has no answer."""

    records: int
    first_offset: int
    last_offset: int


@dataclass
class Deliveries:
    """Counts what was delivered to each partition, and reports lines that were not, soon after they failed.

    Lines that failed together for the same reason are one failure. `stopping` are failures that later lines would
    meet as well; these are not reported, but left for the end.
    """

    report: Callable[[CommandError], object]
    partitions: dict[int, DeliveredRange] = field(default_factory=dict)
    failed_count: int = 0
    stopping: list[CommandError] = field(default_factory=list)
    _pending: dict[str, tuple[list[int], Exception]] = field(default_factory=dict)

    @property
    def records_count(self) -> int:
        """How many records were delivered."""
        return sum(each.records for each in self.partitions.values())

    def count(self, line: int, delivery: "asyncio.Future[RecordMetadata]") -> None:
        """Take the outcome of one line, counted from 1; a cancelled delivery has none."""
        if delivery.cancelled():
            return
        error = delivery.exception()
        if error is not None:
            assert isinstance(error, Exception)
            self.fail(line, error)
            return
        tp, offset, _ = delivery.result()
        before = self.partitions.get(tp.partition, DeliveredRange(0, offset, offset))
        self.partitions[tp.partition] = DeliveredRange(before.records + 1, before.first_offset, offset)

    def fail(self, line: int, error: Exception) -> None:
        """Note that a line was not delivered."""
        if not self._pending:
            asyncio.get_running_loop().call_soon(self.flush)
        self._pending.setdefault(str(error), ([], error))[0].append(line)
        self.failed_count += 1

    def flush(self) -> None:
        """Turn the lines that failed since the last call into failures."""
        for lines, error in self._pending.values():
            failure = _failure(sorted(lines), error)
            if isinstance(error, KafkaError) and error.code in _RECORD_ERRORS:
                self.report(failure)
            else:
                self.stopping.append(failure)
        self._pending.clear()


def lines_text(lines: Iterable[int]) -> str:
    """`line 3`, or `lines 1-2, 7` for several, which ascend."""
    ranges = list(_ranges(lines))
    several = len(ranges) > 1 or ranges[0][0] != ranges[0][1]
    texts = (str(first) if first == last else f"{first}-{last}" for first, last in ranges)
    return f"line{'s' if several else ''} {', '.join(texts)}"


def _ranges(lines: Iterable[int]) -> Iterator[tuple[int, int]]:
    for _, run in groupby(enumerate(lines), lambda each: each[1] - each[0]):
        members = [line for _, line in run]
        yield members[0], members[-1]


def _failure(lines: list[int], error: Exception) -> CommandError:
    exit_code, kind, hint = classify_error(error)
    message = f"{lines_text(lines)}: {error}"
    return CommandError(message, hint=hint, exit_code=exit_code, kind=kind, details={"lines": lines})
