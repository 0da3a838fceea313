"""A store in a local directory: files that are flushed to the disk and renamed."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from barnabas.base import disk
from barnabas.objects.store import ObjectNotFound, StoredObject

#: Of files that are being written; `DirectoryStore.list` leaves them out.
_TEMPORARY_SUFFIX = ".tmp"


class DirectoryStore:
    """`ObjectStore` of the files below a directory, which is created by the first write."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def list(self, prefix: str = "") -> Iterator[StoredObject]:
        for parent, _, names in os.walk(self._directory / prefix):
            for name in names:
                path = Path(parent, name)
                if not name.endswith(_TEMPORARY_SUFFIX):
                    yield StoredObject(path.relative_to(self._directory).as_posix(), path.stat().st_size)

    def directories(self) -> set[str]:
        if not self._directory.is_dir():
            return set()
        return {
            path.name
            for path in self._directory.iterdir()
            if path.is_dir() and next(self.list(path.name), None)
        }

    def size_bytes(self, key: str) -> int:
        try:
            return (self._directory / key).stat().st_size
        except FileNotFoundError as error:
            raise self._not_found(key) from error

    def modified_ms(self, key: str) -> int:
        try:
            return (self._directory / key).stat().st_mtime_ns // 1_000_000
        except FileNotFoundError as error:
            raise self._not_found(key) from error

    def read(self, key: str) -> bytes:
        with self.open(key) as file:
            return file.read()

    def open(self, key: str) -> BinaryIO:
        try:
            return (self._directory / key).open("rb")
        except FileNotFoundError as error:
            raise self._not_found(key) from error

    def write(self, key: str, chunks: Iterable[bytes]) -> int:
        path = self._directory / key
        temporary = self._write_temporary(path, chunks)
        size_bytes = temporary.stat().st_size
        disk.rename(temporary, path)
        disk.sync_path(path.parent)
        return size_bytes

    def create(self, key: str, content: bytes) -> bool:
        path = self._directory / key
        temporary = self._write_temporary(path, [content])
        try:
            os.link(temporary, path)  # unlike a rename, it fails if the name exists
        except FileExistsError:
            return path.read_bytes() == content
        finally:
            disk.remove_file(temporary)
        disk.sync_path(path.parent)
        return True

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            disk.remove_file(self._directory / key)

    def _write_temporary(self, path: Path, chunks: Iterable[bytes]) -> Path:
        self._make_directories(path.parent)
        temporary = path.with_name(f"{path.name}.{uuid4().hex}{_TEMPORARY_SUFFIX}")
        try:
            with temporary.open("xb") as file:
                for chunk in chunks:
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            disk.remove_file(temporary)
            raise
        return temporary

    def _make_directories(self, directory: Path) -> None:
        missing = [each for each in (directory, *directory.parents) if not each.exists()]
        disk.make_directory(directory, parents=True, exist_ok=True)
        for each in missing:
            disk.sync_path(each.parent)

    def _not_found(self, key: str) -> ObjectNotFound:
        return ObjectNotFound(f"{self._directory / key} does not exist")
