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
from barnabas.log.imports.importer import Replacements
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


class Home:
    """A directory with a broker's work on it."""

    def __init__(self, tmp_path: Path, clock: ManualClock) -> None:
        self.path, self.clock = tmp_path / "logs", clock
        self.directories = LogManager.open(
            [self.path, tmp_path / "other"], cluster_id="c", node_id=1, clock=clock, random=Random(0)
        )
        self.directories.load(lambda topic: COMPACT)
        self.worker = LogWorker(self.directories, clock, lambda: SETTINGS.bytes_per_second)
        self.cleaner = LogCleaner(self.directories, clock, lambda: SETTINGS, self.worker)
        self.replacements = Replacements(self.directories, clock, lambda: SETTINGS, self.worker)

    def log(self, keys: str = "abacbd", config: LogConfig = COMPACT, topic: str = "x") -> PartitionLog:
        """A log with a record for each letter, its key, in segments of their own; those of a kind are joined."""
        log = self.directories.create(topic, 0, topic.encode().ljust(16), config)
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
async def home(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Home]:
    made = Home(tmp_path, clock)
    try:
        yield made
    finally:
        await made.replacements.stop()
        await made.cleaner.stop()
        made.worker.close()
        made.directories.close()


def temporary_files(log: PartitionLog) -> list[Path]:
    return [path for path in log.directory.rglob("*") if path.suffix in (CLEANED_SUFFIX, SWAP_SUFFIX)]


@on_loop
async def test_what_is_handed_over_takes_the_place_of_what_was_read(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with home(tmp_path, clock) as the:
        log, twin = the.log(), the.log(topic="y")
        claim, manifest = the.prepare(log)
        compact(twin, clock.now_ms)
        the.append(log, "a")  # while it was prepared
        claim.publish(manifest)
        await the.replacements.import_all()
        outcome = claim.outcome()
        assert outcome is not None
        assert outcome.adopted, outcome
        assert offsets_of(log) == [*offsets_of(twin), 6]
        assert log.cleaner_offset == twin.cleaner_offset == 6
        assert (log.directory.parent / "cleaner-offset-checkpoint").read_text() == "0\n1\nx 0 6\n"
        assert [each.size_bytes for each in log.segments][:-2] == [each.size_bytes for each in twin.segments][
            :-1
        ]
        claim.release()
        assert not claim.path.exists()
        assert the.replacements.statistics() == {
            "adopted_count": 1,
            "adopted_bytes": sum(part.size_bytes for part in manifest.parts),
            "refused_count": 0,
            "claimed": [],
        }


Spoil = Callable[[Home, PartitionLog, Claim, ImportManifest], ImportManifest | None]


def _part(manifest: ImportManifest, **changes: object) -> ImportManifest:
    first, *others = manifest.parts
    return manifest._replace(parts=(first._replace(**changes), *others))  # type: ignore[arg-type]


def _foreign(the: Home, log: PartitionLog, claim: Claim, manifest: ImportManifest) -> ImportManifest:
    """A record that the log never had, at an offset that it has."""
    part = manifest.parts[0]
    file = claim.path / part.file
    batch = bytearray(encode_batch([Record(2, the.clock.now_ms, b"a", b"forged")]))
    batch[:8] = (2).to_bytes(8, "big")
    file.write_bytes(bytes(batch))
    return _part(manifest, size_bytes=len(batch), digest=digest_of(file, len(batch)))


def _shortened(the: Home, log: PartitionLog, claim: Claim, manifest: ImportManifest) -> ImportManifest:
    """The log's last batch, which tells where it was cleaned up to, is left out."""
    last = manifest.parts[-1]
    (claim.path / last.file).write_bytes(b"")
    empty = last._replace(size_bytes=0, digest=digest_of(claim.path / last.file, 0))
    return manifest._replace(parts=(*manifest.parts[:-1], empty))


def _torn(the: Home, log: PartitionLog, claim: Claim, manifest: ImportManifest) -> None:
    file = claim.path / manifest.parts[0].file
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


def _cleaned(the: Home, log: PartitionLog, claim: Claim, manifest: ImportManifest) -> None:
    the.append(log, "abacbd")
    compact(log, the.clock.now_ms)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda the, log, claim, manifest: manifest._replace(topic_id=bytes(16)), "another id"),
        (lambda the, log, claim, manifest: _part(manifest, digest="0"), "is not as the manifest says"),
        (lambda the, log, claim, manifest: _part(manifest, size_bytes=7), "bytes, not 7"),
        (lambda the, log, claim, manifest: _part(manifest, aborted=((1, 0, 1, 1),)), "no transaction"),
        (lambda the, log, claim, manifest: manifest._replace(first_dirty_offset=1), "from offset 0 on"),
        (
            lambda the, log, claim, manifest: _part(
                manifest,
                replaced=tuple(each._replace(digest="0") for each in manifest.parts[0].replaced),
            ),
            "is not as it was read",
        ),
        (_foreign, "is not one of the log's"),
        (_shortened, "must stay"),
        (_torn, "does not match its CRC"),
        (_cleaned, "are not those that were read"),
        (lambda the, log, claim, manifest: log.truncate_to(5) and None, "may be compacted up to"),
    ],
)
@on_loop
async def test_what_does_not_fit_is_refused_and_removed_and_the_log_stays_as_it_is(
    tmp_path: Path, clock: ManualClock, spoil: Spoil, why: str
) -> None:
    async with home(tmp_path, clock) as the:
        log = the.log(config=LogConfig(cleanup_policy=frozenset({"compact"})))
        claim, manifest = the.prepare(log)
        claim.publish(spoil(the, log, claim, manifest) or manifest)
        before = offsets_of(log)
        await the.replacements.import_all()
        outcome = claim.outcome()
        assert outcome is not None
        assert not outcome.adopted
        assert why in outcome.why
        assert offsets_of(log) == before
        assert log.failure is None
        assert temporary_files(log) == []
        assert [path.name for path in claim.path.iterdir()] == ["outcome.json"]
        assert (the.replacements.adopted_count, the.replacements.refused_count) == (0, 1)


@on_loop
async def test_aborted_records_are_not_taken_back(tmp_path: Path, clock: ManualClock) -> None:
    async with home(tmp_path, clock) as the:
        log = the.log("kk")
        verification = log.start_verification(7, 0, 0, bumps_epochs=False)
        batch = encode_batch(
            [Record(0, clock.now_ms, b"k", b"v")], producer_id=7, producer_epoch=0, base_sequence=0,
            transactional=True,
        )  # fmt: skip
        log.append_as_leader(memoryview(batch), 0, verification=verification)
        log.append_end_marker(EndTransactionMarker(7, 0, 0, False, clock.now_ms), 0)
        log.roll()
        log.update_high_watermark(log.log_end_offset)
        claim, manifest = the.prepare(log)
        file, with_aborted = (
            claim.path / "all",
            b"".join(each.path.read_bytes() for each in list(log.segments)[1:3]),
        )
        file.write_bytes(with_aborted)
        digest = digest_of(file, len(with_aborted))
        claim.publish(_part(manifest, file="all", size_bytes=len(with_aborted), digest=digest))
        await the.replacements.import_all()
        outcome = claim.outcome()
        assert outcome is not None
        assert outcome.why == "the batch at offset 2 has records that were aborted"
        claim.release()
        claim, manifest = the.prepare(log)
        assert manifest.parts[0].aborted == tuple(log.segments[2].transaction_index.entries)
        claim.publish(manifest)
        await the.replacements.import_all()
        assert the.replacements.adopted_count == 1
        assert offsets_of(log) == [1]
        assert tuple(log.segments[0].transaction_index.entries) == manifest.parts[0].aborted


@on_loop
async def test_after_a_crash_between_two_swaps_the_rest_is_adopted(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with home(tmp_path, clock) as the:
        log = the.log()
        claim, manifest = the.prepare(log)
        assert len(manifest.parts) > 1
        claim.publish(manifest)
        swap, swaps_count = the.worker.swap, 0

        def once(*arguments: object) -> list[Path]:
            nonlocal swaps_count
            swaps_count += 1
            if swaps_count == 2:
                the.worker.stopping.set()
            return swap(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(the.worker, "swap", once)
        await the.replacements.import_all()
        assert claim.outcome() is None
        the.worker.stopping.clear()
        await the.replacements.import_all()
        outcome = claim.outcome()
        assert outcome is not None
        assert outcome.adopted
        assert swaps_count == 1 + len(manifest.parts)
        assert offsets_of(log) == [2, 3, 4, 5]


@on_loop
async def test_segments_that_retention_has_let_go_of_are_passed_over(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with home(tmp_path, clock) as the:
        log = the.log()
        claim, manifest = the.prepare(log)
        claim.publish(manifest)
        log.increment_log_start_offset(manifest.parts[0].end_offset)
        log.delete_old_segments(0)
        await the.replacements.import_all()
        assert the.replacements.adopted_count == 1
        assert offsets_of(log)[-2:] == [4, 5]


@on_loop
async def test_a_log_that_somebody_prepares_a_replacement_for_is_not_compacted_until_he_is_gone(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with home(tmp_path, clock) as the:
        log = the.log()
        claim, manifest = the.prepare(log)
        await the.replacements.import_all()
        assert the.cleaner.filthiest() is None
        assert the.replacements.statistics()["claimed"] == ["x-0"]
        with pytest.raises(FileExistsError, match="prepared for this log already"):
            Claim(log.directory)
        claim.release()
        claim.path.mkdir()  # as a process that was killed leaves it
        (claim.path / manifest.parts[0].file).write_bytes(b"")
        await the.replacements.import_all()
        assert not claim.path.exists()
        assert the.cleaner.filthiest() is not None


@on_loop
async def test_a_log_that_is_moving_keeps_its_replacement_and_one_that_is_deleted_takes_it_along(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with home(tmp_path, clock) as the:
        log = the.log()
        claim, manifest = the.prepare(log)
        claim.publish(manifest)
        the.directories.create_future(log.topic_partition, the.directories.directories[1])
        await the.replacements.import_all()
        assert claim.outcome() is None
        the.directories.drop_future(log.topic_partition).abandon()
        drive = the.worker.drive

        async def delete_first(*arguments: object) -> object:
            the.directories.delete_async(log.topic_partition)
            return await drive(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(the.worker, "drive", delete_first)
        await the.replacements.import_all()
        outcome = claim.outcome()
        assert outcome is not None
        assert not outcome.adopted
        assert "the log is gone" in outcome.why
        assert (the.replacements.adopted_count, the.replacements.refused_count) == (0, 0)


@on_loop
async def test_what_cannot_be_removed_is_left_alone(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with home(tmp_path, clock) as the:
        log = the.log()
        claim, manifest = the.prepare(log)
        claim.publish(manifest._replace(topic_id=bytes(16)))

        def refuse(*_: object) -> None:
            raise PermissionError("no")

        monkeypatch.setattr("barnabas.log.imports.importer.write_result", refuse)
        await the.replacements.import_all()
        await the.replacements.import_all()
        assert the.replacements.refused_count == 1
        await asyncio.sleep(0)
