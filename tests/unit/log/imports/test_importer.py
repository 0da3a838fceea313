import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from barnabas.base.clock import ManualClock
from barnabas.log.compaction.cleaner import LogCleaner
from barnabas.log.compaction.log_worker import LogWorker
from barnabas.log.files import CLEANED_SUFFIX, SWAP_SUFFIX
from barnabas.log.imports.importer import CompactedSegmentImporter
from barnabas.log.imports.manifest import Claim, ImportManifest, digest_of
from barnabas.log.log_config import LogConfig
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.wire.records.control import EndTransactionMarker
from barnabas.wire.records.record import Record, encode_batch
from support.compaction import CLEANER_SETTINGS as SETTINGS
from support.compaction import compact, offsets_of, parts_of
from support.loop import on_loop

COMPACT = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=3_000)


class ImportNode:
    """Log directories with a cleaner and an importer."""

    def __init__(self, tmp_path: Path, clock: ManualClock) -> None:
        self.path, self.clock = tmp_path / "logs", clock
        self.log_manager = LogManager.open(
            [self.path, tmp_path / "other"], cluster_id="c", node_id=1, clock=clock, random=Random(0)
        )
        self.log_manager.load(lambda topic: COMPACT)
        self.worker = LogWorker(self.log_manager, clock, lambda: SETTINGS.bytes_per_second)
        self.cleaner = LogCleaner(self.log_manager, clock, lambda: SETTINGS, self.worker)
        self.importer = CompactedSegmentImporter(self.log_manager, clock, lambda: SETTINGS, self.worker)

    def log(self, keys: str = "abacbd", config: LogConfig = COMPACT, topic: str = "x") -> PartitionLog:
        """Create a log with one record per letter of `keys`, each in its own segment; upper case makes a tombstone."""
        log = self.log_manager.create(topic, 0, topic.encode().ljust(16), config)
        self.append(log, keys)
        return log

    def append(self, log: PartitionLog, keys: str) -> None:
        for key in keys:
            value = None if key.isupper() else b"v" * 1_000
            batch = encode_batch([Record(0, self.clock.now_ms, key.lower().encode(), value)])
            log.append_as_leader(memoryview(batch), 0)
            log.roll()
        log.update_high_watermark(log.log_end_offset)

    def prepare(self, log: PartitionLog) -> tuple[Claim, ImportManifest]:
        claim = Claim(log.directory)
        assert log.topic_id
        return claim, ImportManifest(log.topic_id, parts_of(log, self.clock.now_ms, claim.path))


@asynccontextmanager
async def running_importer(tmp_path: Path, clock: ManualClock) -> AsyncIterator[ImportNode]:
    node = ImportNode(tmp_path, clock)
    try:
        yield node
    finally:
        await node.importer.stop()
        await node.cleaner.stop()
        node.worker.close()
        node.log_manager.close()


def temporary_files(log: PartitionLog) -> list[Path]:
    return [path for path in log.directory.rglob("*") if path.suffix in (CLEANED_SUFFIX, SWAP_SUFFIX)]


@on_loop
async def test_imported_segments_replace_those_that_were_read(tmp_path: Path, clock: ManualClock) -> None:
    async with running_importer(tmp_path, clock) as node:
        log, twin = node.log(), node.log(topic="y")
        claim, manifest = node.prepare(log)
        compact(twin, clock.now_ms)
        node.append(log, "a")  # while it was prepared
        claim.publish(manifest)
        await node.importer.import_all()
        result = claim.outcome()
        assert result is not None
        assert result.imported, result
        assert offsets_of(log) == [*offsets_of(twin), 6]
        assert log.cleaner_offset == twin.cleaner_offset == 6
        assert (log.directory.parent / "cleaner-offset-checkpoint").read_text() == "0\n1\nx 0 6\n"
        assert [segment.size_bytes for segment in log.segments][:-2] == [
            segment.size_bytes for segment in twin.segments
        ][:-1]
        claim.release()
        assert not claim.path.exists()
        assert node.importer.statistics() == {
            "imported_count": 1,
            "imported_bytes": sum(part.size_bytes for part in manifest.parts),
            "refused_count": 0,
            "claimed": [],
        }


Damage = Callable[[ImportNode, PartitionLog, Claim, ImportManifest], ImportManifest | None]


def _part(manifest: ImportManifest, **changes: object) -> ImportManifest:
    first, *others = manifest.parts
    return manifest._replace(parts=(first._replace(**changes), *others))  # type: ignore[arg-type]


def _with_foreign_record(
    node: ImportNode, log: PartitionLog, claim: Claim, manifest: ImportManifest
) -> ImportManifest:
    """Add a record that the log never had, at an offset that it has."""
    part = manifest.parts[0]
    file = claim.path / part.file
    batch = bytearray(encode_batch([Record(2, node.clock.now_ms, b"a", b"forged")]))
    batch[:8] = (2).to_bytes(8, "big")
    file.write_bytes(bytes(batch))
    return _part(manifest, size_bytes=len(batch), digest=digest_of(file, len(batch)))


def _without_last_batch(
    node: ImportNode, log: PartitionLog, claim: Claim, manifest: ImportManifest
) -> ImportManifest:
    """Leave out the log's last batch, which marks where the log was cleaned up to."""
    last = manifest.parts[-1]
    (claim.path / last.file).write_bytes(b"")
    empty = last._replace(size_bytes=0, digest=digest_of(claim.path / last.file, 0))
    return manifest._replace(parts=(*manifest.parts[:-1], empty))


def _with_flipped_bit(node: ImportNode, log: PartitionLog, claim: Claim, manifest: ImportManifest) -> None:
    file = claim.path / manifest.parts[0].file
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


def _compacted_meanwhile(node: ImportNode, log: PartitionLog, claim: Claim, manifest: ImportManifest) -> None:
    node.append(log, "abacbd")
    compact(log, node.clock.now_ms)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda node, log, claim, manifest: manifest._replace(topic_id=bytes(16)), "another id"),
        (lambda node, log, claim, manifest: _part(manifest, digest="0"), "does not match its digest"),
        (lambda node, log, claim, manifest: _part(manifest, size_bytes=7), "bytes instead of 7"),
        (
            lambda node, log, claim, manifest: _part(manifest, aborted=((1, 0, 1, 1),)),
            "no aborted transaction",
        ),
        (lambda node, log, claim, manifest: manifest._replace(first_dirty_offset=1), "from offset 0 on"),
        (
            lambda node, log, claim, manifest: _part(
                manifest,
                replaced=tuple(segment._replace(digest="0") for segment in manifest.parts[0].replaced),
            ),
            "has changed since it was read",
        ),
        (_with_foreign_record, "does not contain the batch"),
        (_without_last_batch, "must be kept"),
        (_with_flipped_bit, "does not match its CRC"),
        (_compacted_meanwhile, "have changed since they were read"),
        (lambda node, log, claim, manifest: log.truncate_to(5) and None, "may only be compacted up to"),
    ],
)
@on_loop
async def test_segments_that_do_not_match_are_rejected_and_removed_and_the_log_is_unchanged(
    tmp_path: Path, clock: ManualClock, damage: Damage, message: str
) -> None:
    async with running_importer(tmp_path, clock) as node:
        log = node.log(config=LogConfig(cleanup_policy=frozenset({"compact"})))
        claim, manifest = node.prepare(log)
        claim.publish(damage(node, log, claim, manifest) or manifest)
        before = offsets_of(log)
        await node.importer.import_all()
        result = claim.outcome()
        assert result is not None
        assert not result.imported
        assert message in result.why
        assert offsets_of(log) == before
        assert log.failure is None
        assert temporary_files(log) == []
        assert [path.name for path in claim.path.iterdir()] == ["outcome.json"]
        assert (node.importer.imported_count, node.importer.refused_count) == (0, 1)


@on_loop
async def test_aborted_records_are_not_imported(tmp_path: Path, clock: ManualClock) -> None:
    async with running_importer(tmp_path, clock) as node:
        log = node.log("kk")
        verification = log.producers.start_verification(7, 0, 0, bumps_epochs=False)
        batch = encode_batch(
            [Record(0, clock.now_ms, b"k", b"v")], producer_id=7, producer_epoch=0, base_sequence=0,
            transactional=True,
        )  # fmt: skip
        log.append_as_leader(memoryview(batch), 0, verification=verification)
        log.append_transaction_marker(EndTransactionMarker(7, 0, 0, False, clock.now_ms), 0)
        log.roll()
        log.update_high_watermark(log.log_end_offset)
        claim, manifest = node.prepare(log)
        file, with_aborted = (
            claim.path / "all",
            b"".join(segment.path.read_bytes() for segment in list(log.segments)[1:3]),
        )
        file.write_bytes(with_aborted)
        digest = digest_of(file, len(with_aborted))
        claim.publish(_part(manifest, file="all", size_bytes=len(with_aborted), digest=digest))
        await node.importer.import_all()
        result = claim.outcome()
        assert result is not None
        assert result.why == "the batch at offset 2 has records of an aborted transaction"
        claim.release()
        claim, manifest = node.prepare(log)
        assert manifest.parts[0].aborted == tuple(log.segments[2].transaction_index.entries)
        claim.publish(manifest)
        await node.importer.import_all()
        assert node.importer.imported_count == 1
        assert offsets_of(log) == [1]
        assert tuple(log.segments[0].transaction_index.entries) == manifest.parts[0].aborted


@on_loop
async def test_an_import_interrupted_between_two_swaps_is_completed(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_importer(tmp_path, clock) as node:
        log = node.log()
        claim, manifest = node.prepare(log)
        assert len(manifest.parts) > 1
        claim.publish(manifest)
        swap, swaps_count = node.worker.swap, 0

        def swap_and_stop(*arguments: object) -> list[Path]:
            nonlocal swaps_count
            swaps_count += 1
            if swaps_count == 2:
                node.worker.stopping.set()
            return swap(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(node.worker, "swap", swap_and_stop)
        await node.importer.import_all()
        assert claim.outcome() is None
        node.worker.stopping.clear()
        await node.importer.import_all()
        result = claim.outcome()
        assert result is not None
        assert result.imported
        assert swaps_count == 1 + len(manifest.parts)
        assert offsets_of(log) == [2, 3, 4, 5]


@on_loop
async def test_segments_that_retention_has_deleted_are_skipped(tmp_path: Path, clock: ManualClock) -> None:
    async with running_importer(tmp_path, clock) as node:
        log = node.log()
        claim, manifest = node.prepare(log)
        claim.publish(manifest)
        log.increment_log_start_offset(manifest.parts[0].end_offset)
        log.delete_old_segments(0)
        await node.importer.import_all()
        assert node.importer.imported_count == 1
        assert offsets_of(log)[-2:] == [4, 5]


@on_loop
async def test_a_log_is_not_compacted_while_an_import_is_prepared(tmp_path: Path, clock: ManualClock) -> None:
    async with running_importer(tmp_path, clock) as node:
        log = node.log()
        claim, manifest = node.prepare(log)
        await node.importer.import_all()
        assert node.cleaner.filthiest() is None
        assert node.importer.statistics()["claimed"] == ["x-0"]
        with pytest.raises(FileExistsError, match="another process is preparing an import"):
            Claim(log.directory)
        claim.release()
        claim.path.mkdir()  # as left by a killed process
        (claim.path / manifest.parts[0].file).write_bytes(b"")
        await node.importer.import_all()
        assert not claim.path.exists()
        assert node.cleaner.filthiest() is not None


@on_loop
async def test_an_import_waits_while_the_log_is_moved_and_is_dropped_when_it_is_deleted(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_importer(tmp_path, clock) as node:
        log = node.log()
        claim, manifest = node.prepare(log)
        claim.publish(manifest)
        node.log_manager.create_future(log.topic_partition, node.log_manager.directories[1])
        await node.importer.import_all()
        assert claim.outcome() is None
        node.log_manager.drop_future(log.topic_partition).local.abandon()
        drive = node.worker.drive

        async def delete_first(*arguments: object) -> object:
            node.log_manager.delete_async(log.topic_partition)
            return await drive(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(node.worker, "drive", delete_first)
        await node.importer.import_all()
        result = claim.outcome()
        assert result is not None
        assert not result.imported
        assert "the log was deleted" in result.why
        assert (node.importer.imported_count, node.importer.refused_count) == (0, 0)


@on_loop
async def test_an_import_that_cannot_be_removed_is_skipped(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_importer(tmp_path, clock) as node:
        log = node.log()
        claim, manifest = node.prepare(log)
        claim.publish(manifest._replace(topic_id=bytes(16)))

        def fail(*_: object) -> None:
            raise PermissionError("no")

        monkeypatch.setattr("barnabas.log.imports.importer.write_result", fail)
        await node.importer.import_all()
        await node.importer.import_all()
        assert node.importer.refused_count == 1
        await asyncio.sleep(0)
