"""What all stores have in common: each test runs with a directory and with an object store."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from barnabas.objects.location import parse_location
from barnabas.objects.opening import open_store
from barnabas.objects.store import ObjectNotFound, ObjectStore, StoredObject
from support.object_server import ObjectServer


@pytest.fixture(params=["directory", "objects"])
def store(request: pytest.FixtureRequest, tmp_path: Path, server: ObjectServer, bucket: str) -> ObjectStore:
    if request.param == "directory":
        return open_store(parse_location(str(tmp_path / "new" / "store")))
    return open_store(parse_location(f"s3://{bucket}/new/store"), server.settings)


def test_objects_are_listed_by_directory(store: ObjectStore) -> None:
    assert list(store.list()) == []
    assert store.directories() == set()
    for key in ("a/1", "a/b=c/2 ü%20", "ab/3", "4"):
        store.write(key, [key.encode()])
    assert {key for key, _ in store.list()} == {"a/1", "a/b=c/2 ü%20", "ab/3", "4"}
    assert store.directories() == {"a", "ab"}
    assert sorted(store.list("a")) == [StoredObject("a/1", 3), StoredObject("a/b=c/2 ü%20", 13)]
    assert store.read("a/b=c/2 ü%20").decode() == "a/b=c/2 ü%20"


def test_a_large_object_is_written_and_read_in_parts(store: ObjectStore) -> None:
    chunks = [bytes([number]) * (1 << 20) for number in range(20)]
    assert store.write("large", iter(chunks)) == 20 << 20
    assert store.size_bytes("large") == 20 << 20
    with store.open("large") as file:
        file.seek(-(2 << 20) - 1, 2)
        assert file.read(2) == bytes([17, 18])
        file.seek(0)
        assert file.read() == b"".join(chunks)
        assert file.read() == b""


def test_an_empty_object_is_an_object(store: ObjectStore) -> None:
    assert store.write("empty", []) == 0
    with store.open("empty") as file:
        assert file.read() == b""


def test_a_write_replaces_an_object(store: ObjectStore) -> None:
    store.write("a", [b"old"])
    store.write("a", [b"new"])
    assert store.read("a") == b"new"


def test_a_write_that_fails_is_not_visible(store: ObjectStore) -> None:
    store.write("a", [b"old"])

    def chunks() -> Iterator[bytes]:
        yield b"x" * (20 << 20)
        raise RuntimeError("disk of the writer failed")

    for key in ("a", "b"):
        with pytest.raises(RuntimeError, match="disk of the writer failed"):
            store.write(key, chunks())
    assert list(store.list()) == [StoredObject("a", 3)]


def test_one_of_several_creators_succeeds(store: ObjectStore) -> None:
    contents = [f"creator {number}".encode() for number in range(8)]
    with ThreadPoolExecutor(len(contents)) as pool:
        created = list(pool.map(lambda content: store.create("claims/1", content), contents))
    assert created.count(True) == 1
    assert store.read("claims/1") == contents[created.index(True)]
    assert list(store.list()) == [StoredObject("claims/1", len(contents[0]))]


def test_a_repeated_creation_finds_its_own_object(store: ObjectStore) -> None:
    assert store.create("claim", b"mine")
    assert store.create("claim", b"mine")
    assert not store.create("claim", b"other")


def test_deleting_ignores_objects_that_do_not_exist(store: ObjectStore) -> None:
    for number in range(3):
        store.write(f"a/{number}", [b"x"])
    store.delete(iter(["a/0", "a/2", "a/none"]))
    store.delete([])
    assert [key for key, _ in store.list()] == ["a/1"]


def test_an_object_that_does_not_exist_is_an_error_with_its_name(store: ObjectStore) -> None:
    for read in (store.read, store.open, store.size_bytes):
        with pytest.raises(ObjectNotFound, match="new/store/a/none does not exist"):
            read("a/none")
