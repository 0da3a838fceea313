"""Check of one partition over the wire: every batch that its leader returns, like batches of files."""

from collections.abc import Callable

from barnabas.base.ids import TopicPartition
from barnabas.reading.offset_range import OffsetRange
from barnabas.reading.range_reader import RangeReader
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import iterate_headers
from pyspark_barnabas.jobs.scrub.batch_checks import CUT, UNREADABLE, BatchChecks, FilePosition, Scrubbed

_ATTEMPTS_COUNT = 2


def scrub_fetched(
    reader: RangeReader,
    tp: TopicPartition,
    topic_id: bytes,
    start_of: Callable[[], int],
    end: int,
    *,
    allow_gaps: bool,
) -> Scrubbed:
    """Check all batches of a partition up to `end`; on findings check again, because retention may have run meanwhile.

    :param start_of: Returns the current log start offset.
    :param allow_gaps: Whether compaction may have removed offsets, including the last ones.
    :raises KafkaError: The partition cannot be read for another reason than damage.
    """
    result = Scrubbed(*tp)
    for _ in range(_ATTEMPTS_COUNT):
        requested = OffsetRange(tp, start_of(), end)
        result = _scrub(reader, requested, topic_id, allow_gaps=allow_gaps)
        if not result.findings_count:
            break
    return result


def _scrub(reader: RangeReader, requested: OffsetRange, topic_id: bytes, *, allow_gaps: bool) -> Scrubbed:
    checks = BatchChecks(requested.tp)
    checks.begin_at(requested.low)
    checks.cleaned = requested.high if allow_gaps else 0
    if requested.low < requested.high:
        try:
            for batches, _, _ in reader.read(requested, topic_id):
                for position, header in iterate_headers(batches):
                    if header.base_offset < requested.high:
                        checks.batch(batches, position, header, FilePosition())
        except KafkaError as error:
            if error.code is ErrorCode.CORRUPT_MESSAGE:
                checks.add_finding(
                    UNREADABLE, checks.expected, requested.high - 1, FilePosition(), error.message
                )
                checks.resume_at(requested.high)
            elif (
                error.code is not ErrorCode.OFFSET_NOT_AVAILABLE
            ):  # the log ends earlier, which is reported below
                raise
    if checks.expected < requested.high and checks.is_certain and not allow_gaps:
        what = f"the log ends at offset {checks.expected} instead of {requested.high}"
        checks.add_finding(CUT, checks.expected, requested.high - 1, FilePosition(), what)
    checks.result.next_offset = checks.expected
    return checks.result
