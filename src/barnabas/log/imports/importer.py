"""Imports segments that processes outside the broker have compacted: in threads, in steps; swaps on the event loop.

Segments that do not match the log are rejected and removed; the log stays unchanged.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.base.clock import Clock
from barnabas.log.compaction.cleaner import CleanerSettings, cleanable_of
from barnabas.log.compaction.cleaning_pass import last_records
from barnabas.log.compaction.log_worker import Interrupted, LogWork, LogWorker
from barnabas.log.files import sync_path, unlink_files
from barnabas.log.imports.manifest import (
    MANIFEST_FILE,
    REPLACEMENT_DIRECTORY,
    ImportedSegment,
    ImportManifest,
    ImportResult,
    digest_of,
    read_manifest,
    remove_abandoned,
    write_result,
)
from barnabas.log.imports.validation import ImportableSegment, ImportRejectedError, SegmentImport
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segments.segment import Segment
from barnabas.telemetry import names
from barnabas.telemetry.logs import get_logger
from barnabas.telemetry.metrics import MetricsRegistry

#: Shortest pause between checks, even if `log.cleaner.backoff.ms` is 0: a thread checks the directories.
_REST_MS_MIN = 10

_log = get_logger("barnabas.log.imports.importer")


class _PendingImports(NamedTuple):
    """Logs with a segment import."""

    published: list[PartitionLog]
    claimed: list[PartitionLog]


class CompactedSegmentImporter:
    """Imports compacted segments into logs. All methods run on the event loop."""

    def __init__(
        self,
        log_manager: LogManager,
        clock: Clock,
        settings: Callable[[], CleanerSettings],
        worker: LogWorker,
    ) -> None:
        self._log_manager = log_manager
        self._clock = clock
        self._settings = settings
        self._worker = worker
        #: Called with the files of replaced segments, which readers may still have open.
        self.on_replaced: Callable[[PartitionLog, list[Path]], None] = lambda log, files: None
        self._running: asyncio.Task[None] | None = None
        #: Logs whose completed import could not be removed; they are skipped until the next start.
        self._irremovable: set[PartitionLog] = set()
        self.imported_count = 0
        self.refused_count = 0
        self.imported_bytes = 0

    def start(self) -> None:
        self._running = asyncio.get_running_loop().create_task(self._run(), name="replacements")

    async def stop(self) -> None:
        """Stop after the current step; pending imports are processed after the next start."""
        self._worker.stopping.set()
        if self._running is not None:
            await self._running

    async def _run(self) -> None:
        while not self._worker.stopping.is_set():
            try:
                await self.import_all()
            except Exception:  # the next check may succeed
                _log.exception("cannot check for segments to import")
            rest_ms = max(self._settings().backoff_ms, _REST_MS_MIN)
            try:
                await asyncio.wait_for(self._worker.stopping.wait(), rest_ms / 1000)
            except TimeoutError:
                continue

    async def import_all(self) -> None:
        """Check all logs once, and import pending segments into those that are not in use by another worker."""
        logs = [log for log in self._log_manager.logs.values() if log not in self._irremovable]
        pending = await self._worker.in_thread(_find_pending, logs)
        claimed = set(pending.claimed + pending.published)
        self._worker.claimed = frozenset(claimed)
        for log in pending.published:
            if log in self._worker.busy or not self._worker.should_continue(
                LogWork(log, log.truncations_count)
            ):
                continue
            self._worker.busy.add(log)
            try:
                await self._import_if_possible(log)
            finally:
                self._worker.busy.discard(log)
            claimed.discard(log)
        self._worker.claimed = frozenset(claimed)

    async def _import_if_possible(self, log: PartitionLog) -> None:
        path, work = log.directory / REPLACEMENT_DIRECTORY, LogWork(log, log.truncations_count)
        try:
            manifest = await self._worker.in_thread(read_manifest, path)
            await self._import(work, path, manifest)
        except Interrupted:
            if self._worker.should_continue(work._replace(truncations_count=log.truncations_count)):
                await self._reject(log, path, "the log has changed since the segments were read")
            return
        except Exception as error:  # the same import would fail again
            await self._reject(log, path, str(error) or repr(error))
            return
        self.imported_count += 1
        _log.info(
            "imported segments",
            partition=str(log.topic_partition),
            parts=len(manifest.parts),
            end_offset=manifest.parts[-1].end_offset,
        )
        await self._finish(log, path, ImportResult(imported=True))

    async def _finish(self, log: PartitionLog, path: Path, result: ImportResult) -> None:
        try:
            await self._worker.in_thread(write_result, path, result)
        except OSError as error:
            self._irremovable.add(log)
            _log.error("cannot remove the files of a segment import", path=str(path), why=str(error))

    async def _reject(self, log: PartitionLog, path: Path, why: str) -> None:
        self.refused_count += 1
        _log.warning("segment import rejected", partition=str(log.topic_partition), why=why)
        await self._finish(log, path, ImportResult(imported=False, why=why))

    async def _import(self, work: LogWork, path: Path, manifest: ImportManifest) -> None:
        log = work.log
        if manifest.topic_id != log.topic_id:
            raise ImportRejectedError("the segments are for a topic with another id")
        end_offset = manifest.parts[-1].end_offset
        for part in manifest.parts:
            self._check_cleanable(log, manifest.first_dirty_offset, end_offset)
            if part.end_offset <= log.first_segment_offset or await self._has(work, part):
                continue  # deleted by retention, or swapped before a crash
            old = _segments_of(log, part)
            segment_import = SegmentImport(self._importable_segment(log, path, part, old, end_offset))
            cleaned = await self._worker.drive(work, segment_import.steps())
            files = self._worker.swap(work, old, cleaned)
            await self._worker.in_thread(sync_path, log.directory)
            self.on_replaced(log, files)
            self.imported_bytes += part.size_bytes
            await self._worker.in_thread(unlink_files, [path / part.file])
        log.cleaner_offset = max(log.cleaner_offset, end_offset)
        home = self._log_manager.directory_of(log.topic_partition)
        await self._worker.in_thread(self._log_manager.checkpoint, home)

    def _check_cleanable(self, log: PartitionLog, first_dirty_offset: int, end_offset: int) -> None:
        """:raises ImportRejectedError: When the segments compact too much or too little of the log."""
        if not log.config.is_compacted:
            raise ImportRejectedError("the topic is not compacted")
        cleanable = cleanable_of(log, self._clock.wall_ms())
        if end_offset > cleanable.first_uncleanable_offset:
            raise ImportRejectedError(
                f"the log may only be compacted up to offset {cleanable.first_uncleanable_offset}, not {end_offset}"
            )
        if first_dirty_offset > cleanable.first_dirty_offset:
            raise ImportRejectedError(
                f"the log must be compacted from offset {cleanable.first_dirty_offset} on, not {first_dirty_offset}"
            )

    async def _has(self, work: LogWork, part: ImportedSegment) -> bool:
        """Whether the log contains the segment already."""
        log = work.log
        segment = next((own for own in log.segments.rolled if own.base_offset == part.base_offset), None)
        if segment is None or segment.size_bytes != part.size_bytes:
            return False
        digest = await self._worker.in_thread(digest_of, segment.path, part.size_bytes)
        return digest == part.digest and _end_of(log, segment) == part.end_offset

    def _importable_segment(
        self, log: PartitionLog, path: Path, part: ImportedSegment, old: Sequence[Segment], end_offset: int
    ) -> ImportableSegment:
        settings = self._settings()
        aborted = [entry for segment in log.segments for entry in segment.transaction_index.entries]
        return ImportableSegment(
            part,
            path,
            log.directory,
            [segment.path for segment in old],
            end_offset,
            log.config,
            last_records(log.producers.states.entries),
            aborted,
            self._clock.wall_ms(),
            settings.step_bytes,
        )

    # Statistics

    def register_metrics(self, registry: MetricsRegistry) -> None:
        registry.add_metric(names.SEGMENT_IMPORTS, lambda: [({}, self.imported_count)])
        registry.add_metric(names.SEGMENT_IMPORTS_REJECTED, lambda: [({}, self.refused_count)])

    def statistics(self) -> dict[str, object]:
        """Return counts of imports, and the partitions with pending ones."""
        return {
            "imported_count": self.imported_count,
            "imported_bytes": self.imported_bytes,
            "refused_count": self.refused_count,
            "claimed": [str(log.topic_partition) for log in self._worker.claimed],
        }


def _find_pending(logs: Sequence[PartitionLog]) -> _PendingImports:
    """Return the logs with a published import or one in preparation; removes abandoned ones. Blocks."""
    pending = _PendingImports([], [])
    for log in logs:
        path = log.directory / REPLACEMENT_DIRECTORY
        if not path.exists():
            continue
        if (path / MANIFEST_FILE).exists():
            pending.published.append(log)
        elif not remove_abandoned(log.directory):
            pending.claimed.append(log)
    return pending


def _segments_of(log: PartitionLog, part: ImportedSegment) -> list[Segment]:
    """Return the segments that an imported segment replaces.

    :raises ImportRejectedError: When they have changed.
    """
    expected = [(replaced.base_offset, replaced.size_bytes) for replaced in part.replaced]
    segments = [
        segment
        for segment in log.segments.rolled
        if part.base_offset <= segment.base_offset < part.end_offset
    ]
    if [(segment.base_offset, segment.size_bytes) for segment in segments] != expected:
        raise ImportRejectedError(
            f"the segments from offset {part.base_offset} on have changed since they were read"
        )
    if _end_of(log, segments[-1]) != part.end_offset:
        raise ImportRejectedError(
            f"the segment at offset {segments[-1].base_offset} does not end at {part.end_offset}"
        )
    return segments


def _end_of(log: PartitionLog, segment: Segment) -> int:
    """Return the base offset of the next segment."""
    later = (
        following.base_offset for following in log.segments if following.base_offset > segment.base_offset
    )
    return next(later, log.log_end_offset)
