"""A part of a replacement, put beside the log as a segment of its own once it is known to belong there.

Every batch is checked: its CRC, and that it stands in the log already, with no more records than there, the same
offsets, epochs, producer and sequence. Which records of a batch were left out is its sender's to answer for.
"""

import os
from bisect import bisect_left
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.log.compaction.cleaning_pass import LastRecord, StepBytes, discard, finish, must_retain
from barnabas.log.files import CLEANED_SUFFIX
from barnabas.log.imports.manifest import HeaderDigest, ImportedSegment, Replaced, headers_of
from barnabas.log.log_config import LogConfig
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.segments.segment import BatchFacts, Segment
from barnabas.log.segments.segment_chunks import checked_chunks
from barnabas.log.segments.transaction_index import AbortedTransaction
from barnabas.wire.records.batch import DELETE_HORIZON_BIT, BatchHeader, iterate_headers
from barnabas.wire.records.filtering import EMPTY_ATTRIBUTES

#: Headers that a step passes over behind the last batch that is handed over.
_SKIPPED_AT_ONCE_COUNT = 10_000


class ImportRejectedError(Exception):
    """What is handed over does not belong into the log; the message says why, for people."""


class Adoptable(NamedTuple):
    """A part, the files that it takes the place of, and what the log knows."""

    part: ImportedSegment
    replacement: Path
    directory: Path
    #: Of the segments that the part says it replaces.
    old_files: Sequence[Path]
    #: Where the last part ends.
    end_offset: int
    config: LogConfig
    #: By producer id.
    last_records: Mapping[int, LastRecord]
    #: What the transaction indexes of the log say.
    aborted: Sequence[AbortedTransaction]
    now_ms: int
    step_bytes: int


class Adoption:
    """One part under way."""

    def __init__(self, wanted: Adoptable) -> None:
        self._wanted = wanted
        self._source = _Source(wanted)
        self._digest = HeaderDigest()
        self._aborted_by: dict[int, list[AbortedTransaction]] = {}
        for each in sorted(wanted.aborted, key=_last_offset):
            self._aborted_by.setdefault(each.producer_id, []).append(each)
        self.read_bytes = 0
        self.written_bytes = 0

    def steps(self) -> Generator[StepBytes, None, Segment]:
        """Check and copy; the segment is flushed, its files end in `.cleaned`.

        Nothing is left of it when the generator is closed or fails.

        :raises ImportRejectedError: When something is not as it must be.
        :raises OSError: When the disk fails, or a file is gone.
        :raises KafkaError: CORRUPT_MESSAGE.
        """
        wanted, part = self._wanted, self._wanted.part
        path = wanted.replacement / part.file
        if path.stat().st_size != part.size_bytes:
            raise ImportRejectedError(f"{part.file} has {path.stat().st_size} bytes, not {part.size_bytes}")
        cleaned = Segment.create(
            wanted.directory, part.base_offset, OpenFiles(1), now_ms=wanted.now_ms, suffix=CLEANED_SUFFIX
        )
        try:
            for chunk in checked_chunks(path, part.size_bytes, wanted.step_bytes):
                yield len(chunk) + self._copy(cleaned, chunk)
            for count, _ in enumerate(self._source.skip_rest()):
                if count % _SKIPPED_AT_ONCE_COUNT == 0:
                    yield 0
            if self._digest.text != part.digest:
                raise ImportRejectedError(f"{part.file} is not as the manifest says")
            self._note_aborted(cleaned)
            finish(cleaned, wanted.old_files[-1])
        except BaseException:
            discard(cleaned)
            raise
        finally:
            self._source.close()
        return cleaned

    def _copy(self, cleaned: Segment, chunk: bytes) -> int:
        headers = [header for _, header in iterate_headers(chunk)]
        self._digest.update(headers)
        for header in headers:
            self._check(header, self._source.take(header.base_offset))
        facts: list[BatchFacts] = [
            (header.size_bytes, header.last_offset, header.max_timestamp) for header in headers
        ]
        cleaned.append_batches(memoryview(chunk), facts, self._wanted.config)
        self.read_bytes += len(chunk)
        self.written_bytes += len(chunk)
        return len(chunk)

    def _check(self, header: BatchHeader, before: BatchHeader | None) -> None:
        if before is None or not _is_compaction_of(header, before):
            raise ImportRejectedError(f"the batch at offset {header.base_offset} is not one of the log's")
        if header.records_count and header.is_transactional and not header.is_control:
            aborted = self._aborted_by.get(header.producer_id, [])
            index = bisect_left(aborted, header.base_offset, key=_last_offset)
            if index < len(aborted) and aborted[index].first_offset <= header.base_offset:
                raise ImportRejectedError(
                    f"the batch at offset {header.base_offset} has records that were aborted"
                )

    def _note_aborted(self, cleaned: Segment) -> None:
        part = self._wanted.part
        known = set(self._wanted.aborted)
        for each in part.aborted:
            if each not in known or not part.base_offset <= each.last_offset < part.end_offset:
                raise ImportRejectedError(
                    f"no transaction was aborted at offset {each.last_offset} as the manifest says"
                )
        for each in sorted(set(part.aborted), key=_last_offset):
            cleaned.transaction_index.append(each)


def _last_offset(aborted: AbortedTransaction) -> int:
    return aborted.last_offset


class _Source:
    """The headers of the log's own segments, one after the other; those passed over must be such as may go."""

    def __init__(self, wanted: Adoptable) -> None:
        self._wanted = wanted
        self._headers = self._read()
        self._next: BatchHeader | None = None

    def close(self) -> None:
        self._headers.close()

    def take(self, base_offset: int) -> BatchHeader | None:
        """The batch that begins at `base_offset`."""
        while (header := self._peek()) is not None and header.base_offset < base_offset:
            self._pass_over(header)
        if header is None or header.base_offset != base_offset:
            return None
        self._next = None
        return header

    def skip_rest(self) -> Iterator[BatchHeader]:
        """Pass over all that are left, one by one."""
        while (header := self._peek()) is not None:
            self._pass_over(header)
            yield header

    def _peek(self) -> BatchHeader | None:
        if self._next is None:
            self._next = next(self._headers, None)
        return self._next

    def _pass_over(self, header: BatchHeader) -> None:
        self._next = None
        wanted = self._wanted
        if must_retain(header, wanted.end_offset, wanted.last_records):
            raise ImportRejectedError(
                f"the batch at offset {header.base_offset} must stay, be it without records"
            )

    def _read(self) -> Generator[BatchHeader, None, None]:
        for path, replaced in zip(self._wanted.old_files, self._wanted.part.replaced, strict=True):
            digest = HeaderDigest()
            for headers in _headers_in(path, replaced):
                digest.update(headers)
                yield from headers
            if digest.text != replaced.digest:
                raise ImportRejectedError(
                    f"the segment at offset {replaced.base_offset} is not as it was read"
                )


def _headers_in(path: Path, replaced: Replaced) -> Iterator[list[BatchHeader]]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield from headers_of(fd, replaced.size_bytes)
    finally:
        os.close(fd)


def _is_compaction_of(header: BatchHeader, before: BatchHeader) -> bool:
    """Whether a batch is `before`, or what compaction may leave of it."""
    if header == before:
        return True
    attributes, base_timestamp = before.attributes, before.base_timestamp
    if header.records_count == 0:
        attributes, base_timestamp = attributes & EMPTY_ATTRIBUTES, before.max_timestamp
    elif header.has_delete_horizon and not before.has_delete_horizon:
        attributes, base_timestamp = attributes | DELETE_HORIZON_BIT, header.base_timestamp
    expected = before._replace(
        batch_length=header.batch_length,
        crc=header.crc,
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=min(header.max_timestamp, before.max_timestamp),
        records_count=min(header.records_count, before.records_count),
    )
    return header == expected
