import json
import os
from pathlib import Path

import pytest

from barnabas.log.imports.manifest import (
    Claim,
    HeaderDigest,
    ImportedSegment,
    ImportManifest,
    ImportResult,
    Replaced,
    digest_of,
    headers_of,
    read_manifest,
    remove_abandoned,
    write_result,
)
from barnabas.log.segments.transaction_index import AbortedTransaction
from barnabas.log.startup.checkpoints import MalformedFile
from barnabas.wire.errors import KafkaError
from barnabas.wire.records.batch import read_header
from barnabas.wire.records.record import Record, encode_batch

ID = bytes(range(16))
FIRST = ImportedSegment(
    "a", 0, 10, 3, "d", (Replaced(0, 5, "e"), Replaced(4, 6, "f")), (AbortedTransaction(1, 2, 3, 4),)
)
SECOND = ImportedSegment("b", 10, 12, 0, "d", (Replaced(10, 5, "e"),))


def batch(size_bytes: int) -> bytes:
    return bytes(encode_batch([Record(0, 1, b"k", b"v" * size_bytes)]))


@pytest.mark.parametrize("sizes", [(), (1,), (200_000, 1, 70_000), (10,) * 2_000])
def test_headers_are_found_whatever_the_batch_sizes(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    data = b"".join(map(batch, sizes))
    (tmp_path / "x").write_bytes(data)
    with (tmp_path / "x").open("rb") as file:
        found = [header for block in headers_of(file.fileno(), len(data)) for header in block]
    assert [header.size_bytes for header in found] == [len(batch(size)) for size in sizes]


@pytest.mark.parametrize("data", [batch(5)[:-1], batch(5) + b"\0" * 70, batch(5) + batch(5)[:30]])
def test_bytes_that_are_not_a_batch_are_detected(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(KafkaError, match="no whole batch"):
        digest_of(tmp_path / "x", len(data))


def test_a_digest_depends_on_the_content_but_not_on_leader_epochs() -> None:
    def digest(*batches: bytes) -> str:
        header_digest = HeaderDigest()
        header_digest.update(map(read_header, batches))
        return header_digest.text

    other_leader = bytearray(batch(1))
    other_leader[12:16] = b"\0\0\0\7"
    assert digest(batch(1)) == digest(bytes(other_leader))
    other_value = bytes(encode_batch([Record(0, 1, b"k", b"w")]))
    assert len({digest(batch(1)), digest(other_value), digest(batch(1), batch(1)), digest()}) == 4


def test_a_manifest_is_read_as_it_was_published(tmp_path: Path) -> None:
    claim = Claim(tmp_path)
    manifest = ImportManifest(ID, (FIRST, SECOND), 7)
    claim.publish(manifest)
    assert read_manifest(claim.path) == manifest
    claim.release()
    assert read_manifest(claim.path) == manifest
    with pytest.raises(FileExistsError, match="waiting for the broker"):
        Claim(tmp_path)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((), "the import has no segments"),
        ((SECOND, FIRST), "the one before ends at 12"),
        ((FIRST._replace(end_offset=0),), "the one before ends at 0"),
        ((FIRST._replace(file="../a"),), "must be the name of a file"),
        ((FIRST._replace(file="manifest.json"),), "must be the name of a file"),
        ((FIRST, SECOND._replace(replaced=())), "must replace one with the same base offset"),
        ((FIRST._replace(base_offset=1),), "must replace one with the same base offset"),
    ],
)
def test_an_inconsistent_manifest_is_malformed(
    tmp_path: Path, parts: tuple[ImportedSegment, ...], message: str
) -> None:
    claim = Claim(tmp_path)
    claim.publish(ImportManifest(ID, parts))
    with pytest.raises(MalformedFile, match=message):
        read_manifest(claim.path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1}', '{"version": 0, "topic_id": "x"}'])
def test_a_file_that_is_not_a_manifest_is_malformed(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(MalformedFile):
        read_manifest(tmp_path)


def test_one_process_at_a_time_can_prepare_and_abandoned_files_are_removed(tmp_path: Path) -> None:
    claim = Claim(tmp_path)
    (claim.path / "file").touch()
    assert not remove_abandoned(tmp_path)
    with pytest.raises(FileExistsError, match="is preparing an import"):
        Claim(tmp_path)
    os.close(claim._fd)  # as after a kill
    again = Claim(tmp_path)
    assert list(again.path.iterdir()) == []
    again.release()
    assert not again.path.exists()
    with pytest.raises(FileNotFoundError):
        Claim(tmp_path / "gone")
    assert not remove_abandoned(tmp_path / "gone")


def test_only_the_result_is_left_after_an_import(tmp_path: Path) -> None:
    claim = Claim(tmp_path)
    (claim.path / "a").touch()
    claim.publish(ImportManifest(ID, (FIRST,)))
    assert claim.outcome() is None
    write_result(claim.path, ImportResult(imported=False, why="no"))
    assert claim.outcome() == ImportResult(imported=False, why="no")
    assert json.loads((claim.path / "outcome.json").read_text()) == {"imported": False, "why": "no"}
    claim.release()
    assert list(tmp_path.iterdir()) == []
    write_result(claim.path, ImportResult(imported=True))
    outcome = claim.outcome()
    assert outcome is not None
    assert "the log was deleted" in outcome.why
