"""The differences that a commit makes, as the audit shows them."""

from collections.abc import Iterable, Iterator
from typing import Any

from barnabas.metadata.audit.difference import Difference
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.registry import record_types
from barnabas.metadata.store import StoreChange


def differences(image: MetadataImage, changes: Iterable[StoreChange]) -> Iterator[Difference]:
    """Yield the differences that `changes` would make to `image`."""
    for change in changes:
        name, _, key = change.key.partition("/")
        record_type = record_types()[name]
        if record_type.audit is None:
            continue
        before = image.table(record_type).get(key)
        after: Any = None if change.value is None else record_type.decode(change.value)
        if before != after:
            yield from record_type.audit(image, key, before, after)
