"""The history of the metadata store: replaced values, for how long they are kept, and the state at a revision."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from barnabas.metadata.audit.former_value import FORMER_VALUES, HISTORY_START, KEY, FormerValue
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.record_type import RecordType, RowKeys, Table, split_key
from barnabas.metadata.registry import record_types
from barnabas.metadata.store import NEVER, StoreChange

#: Maximum number of replaced values, of about 500 bytes each, and of their bytes: every broker has them in memory. When
#: there are more, the oldest are removed, and the history begins after them.
KEPT_COUNT_MAX = 20_000
KEPT_BYTES_MAX = 64 << 20


def history_records_for(
    image: MetadataImage, changes: Iterable[StoreChange], now_ms: int
) -> Iterator[StoreChange]:
    """Return the records that keep the values that `changes` replace or remove; none if no history is kept."""
    if KEY not in image.history_start:
        return
    for change in changes:
        name, row_key = split_key(change.key)
        record_type = record_types()[name]
        before = image.table(record_type).get(row_key) if record_type.keeps_history else None
        if before is not None:
            plain = record_type.to_plain(before)
            former = FormerValue(change.key, plain, image.revision_of(change.key), now_ms)
            yield FORMER_VALUES.put(former.row, former)


def history_start(image: MetadataImage) -> int | None:
    """Return the first revision whose state is known; None if no history is kept."""
    if KEY not in image.history_start:
        return None
    return image.history_start[KEY] or image.history_start.revision(KEY)


def decide_keep_history(
    image: MetadataImage, *, enabled: bool, at_once_max: int = sys.maxsize
) -> Decision[bool]:
    """Start the history, or remove it, because a history with a gap would be wrong.

    At most `at_once_max` values are removed. Return whether nothing is left to do; if not, call again.
    """
    if enabled == (KEY in image.history_start):
        return Decision(True)
    if enabled:
        return Decision(True, (HISTORY_START.put(KEY, 0),), {HISTORY_START.key(KEY): NEVER})
    if len(image.former_values) > at_once_max:
        part = decide_expire_history(image, None, count_max=0, at_once_max=at_once_max)
        return Decision(False, part.changes, part.reads)
    return Decision(True, (HISTORY_START.remove(KEY), *map(FORMER_VALUES.remove, image.former_values)))


def decide_expire_history(
    image: MetadataImage,
    ended_before_ms: int | None,
    count_max: int = KEPT_COUNT_MAX,
    bytes_max: int = KEPT_BYTES_MAX,
    at_once_max: int = sys.maxsize,
) -> Decision[int]:
    """Remove values that were replaced before a time (None: none of them), and the oldest if there are too many or they
    have too many bytes.

    At most `at_once_max` are removed; return how many, and call again for the others.
    """
    table = image.former_values
    oldest_first = sorted(table, key=table.revision)
    excess_count = max(len(table) - count_max, _excess_count(table, oldest_first, bytes_max))
    expired = [
        row
        for index, row in enumerate(oldest_first)
        if index < excess_count or (ended_before_ms is not None and table[row].ended_ms < ended_before_ms)
    ][:at_once_max]
    start = history_start(image)
    if not expired or start is None:
        return Decision(0)
    first_known = max(start, *(table.revision(row) for row in expired))
    reads = {HISTORY_START.key(KEY): image.history_start.revision(KEY)}
    changes = (HISTORY_START.put(KEY, first_known), *map(FORMER_VALUES.remove, expired))
    return Decision(len(expired), changes, reads)


def _excess_count(table: Table[FormerValue], oldest_first: Iterable[str], bytes_max: int) -> int:
    """Return how many of the oldest values to remove, so that the others have at most so many bytes."""
    size_bytes = sum(value.size_bytes for value in table.rows.values())
    count = 0
    for row in oldest_first:
        if size_bytes <= bytes_max:
            break
        size_bytes -= table[row].size_bytes
        count += 1
    return count


def value_at(image: MetadataImage, key: str, revision: int) -> Any:
    """Return the value of a key of the store at a known revision; None if it did not exist."""
    former = [value for value in image.former_values.rows.values() if value.key == key]
    return _value_at(image, key, revision, former)


def _value_at(image: MetadataImage, key: str, revision: int, former: Iterable[FormerValue]) -> Any:
    name, row_key = split_key(key)
    ended = image.former_values.revision
    later = [value for value in former if ended(value.row) > revision]
    if later:
        first = min(later, key=lambda value: ended(value.row))
        return record_types()[name].from_plain(first.plain) if first.since <= revision else None
    return image.table(record_types()[name]).get(row_key) if image.revision_of(key) <= revision else None


def states_of(image: MetadataImage, resource: str, revision: int) -> dict[str, Any]:
    """Return the records that the resource has or had, by their keys in the store, as they were at a revision; None for
    those that did not exist.
    """
    of_types = {
        record_type: record_type.rollback.row_keys(resource)
        for record_type in record_types().values()
        if record_type.rollback is not None
    }
    former = _former_values(image, of_types)
    present = [
        record_type.key(row_key)
        for record_type, row_keys in of_types.items()
        for row_key in _present(image.table(record_type), row_keys)
    ]
    return {
        key: _value_at(image, key, revision, former.get(key, ()))
        for key in dict.fromkeys([*present, *former])
    }


def _former_values(
    image: MetadataImage, of_types: Mapping[RecordType[Any], RowKeys]
) -> dict[str, list[FormerValue]]:
    """Return the former values of some records, by their keys in the store. Other values are not decoded."""
    listed = {record_type.key(key) for record_type, row_keys in of_types.items() for key in row_keys.listed}
    prefixes = tuple(
        record_type.key(prefix) for record_type, row_keys in of_types.items() for prefix in row_keys.prefixes
    )
    former: dict[str, list[FormerValue]] = {}
    for value in image.former_values.rows.values():  # faster than those of the table
        if value.key in listed or value.key.startswith(prefixes):
            former.setdefault(value.key, []).append(value)
    return former


def _present(table: Table[Any], row_keys: RowKeys) -> list[str]:
    """Return the row keys of a table that are among some; the table is searched only for prefixes."""
    found = [key for key in row_keys.listed if key in table]
    if row_keys.prefixes:
        found += [key for key in table if key.startswith(row_keys.prefixes)]
    return found
