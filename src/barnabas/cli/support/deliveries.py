"""Counts of delivered and failed input lines of `barnabas produce`."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from barnabas.cli.support.failures import CommandError, classify_error
from barnabas.client.producer.accumulator import RecordMetadata
from barnabas.wire.errors import ErrorCode, KafkaError

#: Errors of single records: later lines may still be delivered.
_RECORD_ERRORS = frozenset(
    {
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
    }
)


class DeliveredRange(NamedTuple):
    """Records delivered to one partition; with acks=0, which has no response, offsets are -1."""

    records: int
    first_offset: int
    last_offset: int


@dataclass
class Deliveries:
    """Counts the delivered records of each partition, and reports failed lines soon after they fail.

    Lines that fail together for the same reason are reported as one error. `stopping` are errors that later lines
    would cause as well; they are not reported here, but at the end of the command.
    """

    report: Callable[[CommandError], object]
    partitions: dict[int, DeliveredRange] = field(default_factory=dict)
    failed_count: int = 0
    stopping: list[CommandError] = field(default_factory=list)
    _pending: dict[str, tuple[list[int], Exception]] = field(default_factory=dict)

    @property
    def records_count(self) -> int:
        return sum(delivered.records for delivered in self.partitions.values())

    def count(self, line: int, delivery: "asyncio.Future[RecordMetadata]") -> None:
        """Count the result of one line, whose number starts at 1; a cancelled delivery is not counted."""
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
        """Record that a line was not delivered."""
        if not self._pending:
            asyncio.get_running_loop().call_soon(self.flush)
        self._pending.setdefault(str(error), ([], error))[0].append(line)
        self.failed_count += 1

    def flush(self) -> None:
        """Report the lines that failed since the last call, or add them to `stopping`."""
        for lines, error in self._pending.values():
            failure = _delivery_error(sorted(lines), error)
            if isinstance(error, KafkaError) and error.code in _RECORD_ERRORS:
                self.report(failure)
            else:
                self.stopping.append(failure)
        self._pending.clear()


def lines_text(lines: Iterable[int]) -> str:
    """Format ascending line numbers: `line 3`, or `lines 1-2, 7`."""
    ranges = list(_ranges(lines))
    is_plural = len(ranges) > 1 or ranges[0][0] != ranges[0][1]
    texts = (str(first) if first == last else f"{first}-{last}" for first, last in ranges)
    return f"line{'s' if is_plural else ''} {', '.join(texts)}"


def _ranges(lines: Iterable[int]) -> Iterator[tuple[int, int]]:
    for _, run in groupby(enumerate(lines), lambda item: item[1] - item[0]):
        members = [line for _, line in run]
        yield members[0], members[-1]


def _delivery_error(lines: list[int], error: Exception) -> CommandError:
    exit_code, kind, hint = classify_error(error)
    message = f"{lines_text(lines)}: {error}"
    return CommandError(message, hint=hint, exit_code=exit_code, kind=kind, details={"lines": lines})
