"""The differences that a commit makes, as the audit shows them."""

from collections.abc import Iterable, Iterator
from typing import Any

from barnabas.metadata.audit.difference import Difference
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.record_type import split_key
from barnabas.metadata.registry import record_types
from barnabas.metadata.store import StoreChange


def differences(image: MetadataImage, changes: Iterable[StoreChange]) -> Iterator[Difference]:
    """Yield the differences that `changes` would make to `image`."""
    for change in changes:
        name, row_key = split_key(change.key)
        record_type = record_types()[name]
        if record_type.audit is None:
            continue
        before = image.table(record_type).get(row_key)
        after: Any = None if change.value is None else record_type.decode(change.value)
        if before != after:
            yield from record_type.audit(image, row_key, before, after)
