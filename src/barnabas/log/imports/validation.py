"""Validates one segment to import, and copies it next to the log.

Every batch is checked: its CRC, and that the log contains it with at least as many records, the same offsets, epochs,
producer and sequence. The process that built the segment is responsible for which records of a batch it left out.
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

#: Headers to skip per step after the last batch of the imported segment.
_SKIPPED_PER_STEP_COUNT = 10_000


class ImportRejectedError(Exception):
    """The segments do not match the log; the message is the reason, for the operator."""


class ImportableSegment(NamedTuple):
    """A segment to import, the files that it replaces, and the state of the log."""

    part: ImportedSegment
    replacement: Path
    directory: Path
    #: Files of the segments that it replaces, according to the manifest.
    old_files: Sequence[Path]
    #: End offset of the last segment of the import.
    end_offset: int
    config: LogConfig
    #: Last records by producer id.
    last_records: Mapping[int, LastRecord]
    #: Entries of all transaction indexes of the log.
    aborted: Sequence[AbortedTransaction]
    now_ms: int
    step_bytes: int


class SegmentImport:
    """The validation and copy of one segment."""

    def __init__(self, to_import: ImportableSegment) -> None:
        self._to_import = to_import
        self._source = _Source(to_import)
        self._digest = HeaderDigest()
        self._aborted_by: dict[int, list[AbortedTransaction]] = {}
        for aborted in sorted(to_import.aborted, key=_last_offset):
            self._aborted_by.setdefault(aborted.producer_id, []).append(aborted)
        self.read_bytes = 0
        self.written_bytes = 0

    def steps(self) -> Generator[StepBytes, None, Segment]:
        """Validate and copy in steps; the resulting segment is flushed, and its files end in `.cleaned`.

        If the generator is closed or fails, the files are removed.

        :raises ImportRejectedError: When the segment does not match the manifest or the log.
        :raises OSError: When the disk fails, or a file does not exist.
        :raises KafkaError: CORRUPT_MESSAGE.
        """
        to_import, part = self._to_import, self._to_import.part
        path = to_import.replacement / part.file
        if path.stat().st_size != part.size_bytes:
            raise ImportRejectedError(
                f"{part.file} has {path.stat().st_size} bytes instead of {part.size_bytes}"
            )
        cleaned = Segment.create(
            to_import.directory,
            part.base_offset,
            OpenFiles(1),
            now_ms=to_import.now_ms,
            suffix=CLEANED_SUFFIX,
        )
        try:
            for chunk in checked_chunks(path, part.size_bytes, to_import.step_bytes):
                yield len(chunk) + self._copy(cleaned, chunk)
            for count, _ in enumerate(self._source.skip_remaining()):
                if count % _SKIPPED_PER_STEP_COUNT == 0:
                    yield 0
            if self._digest.text != part.digest:
                raise ImportRejectedError(f"{part.file} does not match its digest in the manifest")
            self._add_aborted(cleaned)
            finish(cleaned, to_import.old_files[-1])
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
            self._check(header, self._source.advance_to(header.base_offset))
        facts: list[BatchFacts] = [
            (header.size_bytes, header.last_offset, header.max_timestamp) for header in headers
        ]
        cleaned.append_batches(memoryview(chunk), facts, self._to_import.config)
        self.read_bytes += len(chunk)
        self.written_bytes += len(chunk)
        return len(chunk)

    def _check(self, header: BatchHeader, before: BatchHeader | None) -> None:
        if before is None or not _is_compaction_of(header, before):
            raise ImportRejectedError(f"the log does not contain the batch at offset {header.base_offset}")
        if header.records_count and header.is_transactional and not header.is_control:
            aborted = self._aborted_by.get(header.producer_id, [])
            index = bisect_left(aborted, header.base_offset, key=_last_offset)
            if index < len(aborted) and aborted[index].first_offset <= header.base_offset:
                raise ImportRejectedError(
                    f"the batch at offset {header.base_offset} has records of an aborted transaction"
                )

    def _add_aborted(self, cleaned: Segment) -> None:
        part = self._to_import.part
        known = set(self._to_import.aborted)
        for aborted in part.aborted:
            if aborted not in known or not part.base_offset <= aborted.last_offset < part.end_offset:
                raise ImportRejectedError(
                    f"the log has no aborted transaction at offset {aborted.last_offset}, unlike the manifest"
                )
        for aborted in sorted(set(part.aborted), key=_last_offset):
            cleaned.transaction_index.append(aborted)


def _last_offset(aborted: AbortedTransaction) -> int:
    return aborted.last_offset


class _Source:
    """The batch headers of the replaced segments, in order; checks that compaction may remove skipped ones."""

    def __init__(self, to_import: ImportableSegment) -> None:
        self._to_import = to_import
        self._headers = self._read()
        self._next: BatchHeader | None = None

    def close(self) -> None:
        self._headers.close()

    def advance_to(self, base_offset: int) -> BatchHeader | None:
        """Return the batch at `base_offset`, skipping those before it; None if there is none."""
        while (header := self._peek()) is not None and header.base_offset < base_offset:
            self._skip(header)
        if header is None or header.base_offset != base_offset:
            return None
        self._next = None
        return header

    def skip_remaining(self) -> Iterator[BatchHeader]:
        """Skip and yield all remaining batches, one by one."""
        while (header := self._peek()) is not None:
            self._skip(header)
            yield header

    def _peek(self) -> BatchHeader | None:
        if self._next is None:
            self._next = next(self._headers, None)
        return self._next

    def _skip(self, header: BatchHeader) -> None:
        self._next = None
        to_import = self._to_import
        if must_retain(header, to_import.end_offset, to_import.last_records):
            raise ImportRejectedError(
                f"the batch at offset {header.base_offset} must be kept, even without records"
            )

    def _read(self) -> Generator[BatchHeader, None, None]:
        for path, replaced in zip(self._to_import.old_files, self._to_import.part.replaced, strict=True):
            digest = HeaderDigest()
            for headers in _headers_in(path, replaced):
                digest.update(headers)
                yield from headers
            if digest.text != replaced.digest:
                raise ImportRejectedError(
                    f"the segment at offset {replaced.base_offset} has changed since it was read"
                )


def _headers_in(path: Path, replaced: Replaced) -> Iterator[list[BatchHeader]]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield from headers_of(fd, replaced.size_bytes)
    finally:
        os.close(fd)


def _is_compaction_of(header: BatchHeader, before: BatchHeader) -> bool:
    """Whether `header` is `before`, or what compaction may leave of it."""
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
