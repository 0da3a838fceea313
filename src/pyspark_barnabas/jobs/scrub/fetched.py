"""One partition over the wire: every batch that its leader gives, checked as those of files are."""

from collections.abc import Callable

from barnabas.base.ids import TopicPartition
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import iterate_headers
from pyspark_barnabas.jobs.scrub.batch_checks import CUT, UNREADABLE, BatchChecks, FilePosition, Scrubbed
from pyspark_barnabas.source.fetching import RangeReader
from pyspark_barnabas.source.range_splitting import OffsetRange

_ATTEMPTS_COUNT = 2


def scrub_fetched(
    reader: RangeReader,
    place: TopicPartition,
    topic_id: bytes,
    start_of: Callable[[], int],
    end: int,
    *,
    may_lack: bool,
) -> Scrubbed:
    """Check all batches of a partition up to `end`; where something is found, once more, as retention may have come by.

    :param start_of: Asks where the log begins now.
    :param may_lack: Whether a cleaner may have taken offsets out, the last ones too.
    :raises KafkaError: When the partition cannot be read for another reason than damage.
    """
    found = Scrubbed(*place)
    for _ in range(_ATTEMPTS_COUNT):
        wanted = OffsetRange(place, start_of(), end)
        found = _scrub(reader, wanted, topic_id, may_lack=may_lack)
        if not found.findings_count:
            break
    return found


def _scrub(reader: RangeReader, wanted: OffsetRange, topic_id: bytes, *, may_lack: bool) -> Scrubbed:
    checks = BatchChecks(wanted.place)
    checks.begin_at(wanted.low)
    checks.cleaned = wanted.high if may_lack else 0
    if wanted.low < wanted.high:
        try:
            for batches, _, _ in reader.read(wanted, topic_id):
                for position, header in iterate_headers(batches):
                    if header.base_offset < wanted.high:
                        checks.batch(batches, position, header, FilePosition())
        except KafkaError as error:
            if error.code is ErrorCode.CORRUPT_MESSAGE:
                checks.find(UNREADABLE, checks.expected, wanted.high - 1, FilePosition(), error.message)
                checks.resume_at(wanted.high)
            elif error.code is not ErrorCode.OFFSET_NOT_AVAILABLE:  # there is nothing more, as is told below
                raise
    if checks.expected < wanted.high and checks.is_certain and not may_lack:
        what = f"the log ends at offset {checks.expected}, not at {wanted.high}"
        checks.find(CUT, checks.expected, wanted.high - 1, FilePosition(), what)
    checks.result.next_offset = checks.expected
    return checks.result
