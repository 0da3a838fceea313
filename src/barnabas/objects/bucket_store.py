"""A store in Amazon S3, Google Cloud Storage, Azure, or a server with their protocols, through obstore.

obstore retries requests that fail (settings `max_retries` and `retry_timeout`), and uploads large objects in parts. The
parts of an upload that a crash interrupts are not visible; a lifecycle rule of the bucket can remove them.
"""

import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, BinaryIO, cast

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import AzureStore, GCSStore, S3Store

from barnabas.objects.location import LocationError, ObjectLocation
from barnabas.objects.settings import StoreSettings
from barnabas.objects.store import ObjectNotFound, ObjectStoreError, StoredObject

#: S3 accepts 10,000 parts, so the largest object has 80 GiB.
_PART_BYTES = 8 << 20
#: Parts of one upload that are in memory, and sent, at a time.
_PARTS_MAX = 3
_READ_BYTES = 4 << 20
#: As many as S3 deletes in one request.
_DELETES_MAX = 1000
_CLASSES = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}
_MESSAGE_CHARACTERS_MAX = 300
#: Causes that obstore wraps into long messages: the server's code, and its explanation.
_SERVER_ERROR = re.compile(r"<Code>(?P<code>\w+)</Code>(?:\s*<Message>(?P<message>[^<]*)</Message>)?")
_MISSING_BUCKET = re.compile("NoSuchBucket|ContainerNotFound|The specified bucket does not exist")
_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}


class BucketStore:
    """`ObjectStore` of the objects below a prefix of a bucket."""

    def __init__(self, location: ObjectLocation, settings: StoreSettings) -> None:
        """Prepare requests; the first one comes with the first method.

        :raises LocationError: A setting is not valid.
        """
        self._location = location
        self._settings = settings
        prefix = location.prefix or None
        arguments = settings.arguments()
        try:
            self._store = _CLASSES[location.scheme](location.bucket, prefix=prefix, **arguments)
        except (BaseError, ValueError) as error:
            raise LocationError(f"{location}: {self._plain(error)}") from None

    def list(self, prefix: str = "") -> Iterator[StoredObject]:
        """The service returns a thousand objects with each response."""
        with self._errors("list", prefix):
            for page in obstore.list(self._store, prefix or None):
                for meta in page:
                    yield StoredObject(meta["path"], meta["size"])

    def directories(self) -> set[str]:
        """The service skips the objects in the directories."""
        with self._errors("list", ""):
            return set(obstore.list_with_delimiter(self._store)["common_prefixes"])

    def size_bytes(self, key: str) -> int:
        with self._errors("read", key):
            return obstore.head(self._store, key)["size"]

    def modified_ms(self, key: str) -> int:
        with self._errors("read", key):
            return int(obstore.head(self._store, key)["last_modified"].timestamp() * 1000)

    def read(self, key: str) -> bytes:
        with self._errors("read", key):
            return bytes(obstore.get(self._store, key).bytes())

    def open(self, key: str) -> BinaryIO:
        """If the object is replaced meanwhile, reading fails."""
        with self._errors("read", key):
            meta = obstore.head(self._store, key)
        return io.BufferedReader(_ObjectReader(self, key, meta["size"], meta["e_tag"]), _READ_BYTES)

    def read_range(self, key: str, start: int, end: int, e_tag: str | None) -> memoryview:
        """Return the bytes [start, end) of an object that still has this tag."""
        options: dict[str, Any] = {"range": (start, end)}
        if e_tag is not None:
            options["if_match"] = e_tag
        with self._errors("read", key):
            return memoryview(
                obstore.get(self._store, key, options=cast("obstore.GetOptions", options)).bytes()
            )

    def write(self, key: str, chunks: Iterable[bytes]) -> int:
        """Large objects are uploaded in parts while the chunks arrive."""
        size_bytes = 0

        def counted() -> Iterator[bytes]:
            nonlocal size_bytes
            for chunk in chunks:
                size_bytes += len(chunk)
                yield chunk

        with self._errors("write", key):
            obstore.put(
                self._store,
                key,
                counted(),
                use_multipart=True,
                chunk_size=_PART_BYTES,
                max_concurrency=_PARTS_MAX,
            )
        return size_bytes

    def create(self, key: str, content: bytes) -> bool:
        """The service must support conditional writes (`If-None-Match`)."""
        with self._errors("write", key):
            try:
                obstore.put(self._store, key, content, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return self.read(key) == content
        return True

    def delete(self, keys: Iterable[str]) -> None:
        remaining = iter(keys)
        while page := list(islice(remaining, _DELETES_MAX)):
            with self._errors("delete", page[0]):
                obstore.delete(self._store, page)

    @contextmanager
    def _errors(self, action: str, key: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            if error.errno is not None or isinstance(error, ObjectStoreError):  # of the caller's chunks
                raise
            if _MISSING_BUCKET.search(str(error)):
                raise self._missing_bucket(action, key) from None
            raise ObjectNotFound(f"{self._location / key} does not exist") from None
        except BaseError as error:
            if _MISSING_BUCKET.search(str(error)):
                raise self._missing_bucket(action, key) from None
            message = f"cannot {action} {self._location / key}: {self._plain(error)}"
            if isinstance(error, PermissionDeniedError | UnauthenticatedError):
                message += f"; check {_CREDENTIALS[self._location.scheme]} and the permissions of that user"
            raise ObjectStoreError(message) from None

    def _missing_bucket(self, action: str, key: str) -> ObjectStoreError:
        kind = "container" if self._location.scheme == "az" else "bucket"
        return ObjectStoreError(
            f"cannot {action} {self._location / key}: {kind} '{self._location.bucket}' does not exist"
        )

    def _plain(self, error: Exception) -> str:
        """Return the cause of an error in one line, without secrets."""
        text = str(error).partition("\n\nDebug source")[0]
        if found := _SERVER_ERROR.search(text):
            text = f"{found['code']}: {found['message']}" if found["message"] else found["code"]
        text = " ".join(self._settings.redacted(text).split())
        return text if len(text) <= _MESSAGE_CHARACTERS_MAX else f"{text[:_MESSAGE_CHARACTERS_MAX]}..."


class _ObjectReader(io.RawIOBase):
    """Reads ranges of one version of an object."""

    def __init__(self, store: BucketStore, key: str, size_bytes: int, e_tag: str | None) -> None:
        self._store, self._key, self._e_tag = store, key, e_tag
        self._size_bytes = size_bytes
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size_bytes}[whence]
        self._position = max(0, base + offset)
        return self._position

    def readall(self) -> bytes:
        """Read the rest with few requests; that of the base class makes one for every 8 KiB."""
        chunks = []
        while self._position < self._size_bytes:
            end = min(self._position + _READ_BYTES, self._size_bytes)
            chunks.append(self._store.read_range(self._key, self._position, end, self._e_tag))
            self._position = end
        return b"".join(chunks)

    def readinto(self, buffer: Any) -> int:
        end = min(self._position + len(buffer), self._size_bytes)
        if end <= self._position:
            return 0
        content = self._store.read_range(self._key, self._position, end, self._e_tag)
        buffer[: len(content)] = content
        self._position += len(content)
        return len(content)
