"""Manifests and files in an object store after runs that may die or lose at any point."""

from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.objects.directory_store import DirectoryStore
from barnabas.objects.location import ObjectLocation
from barnabas.objects.settings import StoreSettings
from barnabas.objects.store import ObjectStoreError
from pyspark_barnabas.jobs.archive.manifest import ArchivedFile, ArchiveError, ArchiveManifest
from pyspark_barnabas.jobs.archive.object_target import ObjectTarget, StagedFiles, manifest_key

TP = TopicPartition("orders", 0)
LOCATION = ObjectLocation("s3", "bucket", "archive")


@pytest.fixture
def target(tmp_path: Path) -> ObjectTarget:
    return ObjectTarget(LOCATION, StoreSettings(), DirectoryStore(tmp_path))


def manifest(run: int) -> ArchiveManifest:
    return ArchiveManifest(run, "read_committed", {"orders": "ab" * 16}, {TP: run - 1}, {TP: run})


def staged(target: ObjectTarget, run: int, name: str) -> StagedFiles:
    """Write a file as a task does."""
    files = target.staging(run)
    key = f"run={run:08d}/topic=orders/date=2026-03-01/part-{name * 32}.parquet"
    size_bytes = target.store.write(key, [b"rows of ", name.encode()])
    files.written = (ArchivedFile(key, "orders", "2026-03-01", size_bytes, "digest", 1),)
    return files


def keys(target: ObjectTarget) -> list[str]:
    return sorted(key for key, _ in target.store.list())


def test_the_newest_run_has_the_state(target: ObjectTarget) -> None:
    assert target.newest() is None
    for run in (1, 2):
        target.commit(manifest(run), staged(target, run, "a"))
    newest = target.newest()
    assert newest is not None
    assert (newest.run, newest.ends) == (2, {TP: 2})
    assert newest.files == staged(target, 2, "a").written


def test_a_run_without_a_manifest_is_invisible_and_removed_when_one_is_complete(target: ObjectTarget) -> None:
    left, complete = staged(target, 1, "a"), staged(target, 1, "b")
    assert target.runs() == []
    target.commit(manifest(1), complete)
    assert keys(target) == sorted([manifest_key(1), complete.written[0].key])
    late = staged(target, 1, "c")
    staged(target, 2, "d")
    assert {left.written[0].key, late.written[0].key} & set(keys(target)) == set()
    assert target.runs() == [1]


def test_the_second_of_two_runs_fails_and_leaves_nothing(target: ObjectTarget) -> None:
    first, second = staged(target, 1, "a"), staged(target, 1, "b")
    target.commit(manifest(1), first)
    with pytest.raises(ArchiveError, match="another run wrote to s3://bucket/archive and was complete first"):
        target.commit(manifest(1), second)
    assert target.manifest(1).files == first.written
    assert keys(target) == sorted([manifest_key(1), first.written[0].key])


def test_errors_are_explained_if_another_run_was_complete_first(target: ObjectTarget) -> None:
    with pytest.raises(ZeroDivisionError), target.locked():
        raise ZeroDivisionError

    def lose() -> None:
        with target.locked():
            target.commit(manifest(1), staged(target, 1, "a"))
            raise ObjectStoreError("a file does not exist")

    with pytest.raises(ArchiveError, match="another run"):
        lose()


def test_files_of_other_tools_are_not_deleted(target: ObjectTarget) -> None:
    key = "run=00000001/topic=orders/date=2026-03-01/part-00000-c000.snappy.parquet"
    target.store.write(key, [b"of another tool"])
    target.commit(manifest(1), staged(target, 1, "a"))
    assert key in keys(target)


def test_a_manifest_from_a_directory_stands_for_the_files_that_there_are(target: ObjectTarget) -> None:
    key = "run=00000001/topic=orders/date=2026-03-01/part-00000-c000.snappy.parquet"
    target.store.write(key, [b"rows"])
    for other in ("run=00000001/_SUCCESS", "run=00000001/topic=orders/date=2026-03-01/_part.parquet"):
        target.store.write(other, [b""])
    target.store.write(manifest_key(1), [manifest(1).to_json().encode()])
    assert target.manifest(1) == manifest(1)
    assert target.files_of(target.manifest(1)) == [ArchivedFile(key, "orders", "2026-03-01", 4)]
    staged(target, 2, "a")
    assert key in keys(target)


def test_a_missing_run_is_reported(target: ObjectTarget) -> None:
    for run in (1, 2, 3):
        target.commit(manifest(run), staged(target, run, "a"))
    target.store.delete([key for key in keys(target) if key.startswith("run=00000002/")])
    with pytest.raises(ArchiveError, match="s3://bucket/archive: directory run=00000002 is missing"):
        target.newest()


@pytest.mark.parametrize("text", ["{}", '{"version": 9}', "[]"])
def test_a_damaged_manifest_is_reported(target: ObjectTarget, text: str) -> None:
    target.store.write(manifest_key(1), [text.encode()])
    with pytest.raises(ArchiveError, match=r"_manifest\.json is not a valid archive manifest"):
        target.newest()
