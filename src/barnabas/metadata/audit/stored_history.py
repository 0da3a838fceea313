"""The store as it was at a revision, as far as it is kept: with what, for how long, since when."""

from collections.abc import Iterable, Iterator
from typing import Any

from barnabas.metadata.audit.historical_value import FORMER_VALUES, HISTORY_START, KEY, FormerValue
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.registry import record_types
from barnabas.metadata.store import NEVER, StoreChange

#: Values that are kept, some 500 bytes each; beyond, the oldest go, and the history begins behind them.
KEPT_COUNT_MAX = 20_000


def history_records_for(
    image: MetadataImage, changes: Iterable[StoreChange], now_ms: int
) -> Iterator[StoreChange]:
    """What keeps the values that `changes` replace or remove, where a history is kept."""
    if KEY not in image.history_start:
        return
    for change in changes:
        name, _, row = change.key.partition("/")
        record_type = record_types()[name]
        before = image.table(record_type).get(row) if record_type.keeps_history else None
        if before is not None:
            plain = record_type.to_plain(before)
            former = FormerValue(change.key, plain, image.revision_of(change.key), now_ms)
            yield FORMER_VALUES.put(former.row, former)


def history_start(image: MetadataImage) -> int | None:
    """The first revision of which the state is known; None when nothing is kept."""
    if KEY not in image.history_start:
        return None
    return image.history_start[KEY] or image.history_start.revision(KEY)


def decide_keep_history(image: MetadataImage, *, wanted: bool) -> Decision[None]:
    """Begin a history, or let go of the one that there is: with a gap in it, it would tell wrong things."""
    if wanted == (KEY in image.history_start):
        return Decision(None)
    if wanted:
        return Decision(None, (HISTORY_START.put(KEY, 0),), {HISTORY_START.key(KEY): NEVER})
    return Decision(None, (HISTORY_START.remove(KEY), *map(FORMER_VALUES.remove, image.former_values)))


def decide_expire_history(
    image: MetadataImage, ended_before_ms: int | None, count_max: int = KEPT_COUNT_MAX
) -> Decision[None]:
    """Let go of values that were replaced before a time (None: of none), and of the oldest of too many."""
    table = image.former_values
    oldest_first = sorted(table, key=table.revision)
    too_many = len(table) - count_max
    gone = [
        row
        for index, row in enumerate(oldest_first)
        if index < too_many or (ended_before_ms is not None and table[row].ended_ms < ended_before_ms)
    ]
    start = history_start(image)
    if not gone or start is None:
        return Decision(None)
    first_known = max(start, *(table.revision(row) for row in gone))
    reads = {HISTORY_START.key(KEY): image.history_start.revision(KEY)}
    changes = (HISTORY_START.put(KEY, first_known), *map(FORMER_VALUES.remove, gone))
    return Decision(None, changes, reads)


def value_at(image: MetadataImage, key: str, revision: int) -> Any:
    """What a key of the store had at a revision that is known; None for nothing."""
    return _value_at(image, key, revision, [each for each in image.former_values.values() if each.key == key])


def _value_at(image: MetadataImage, key: str, revision: int, former: Iterable[FormerValue]) -> Any:
    name, _, row = key.partition("/")
    ended = image.former_values.revision
    later = [each for each in former if ended(each.row) > revision]
    if later:
        first = min(later, key=lambda each: ended(each.row))
        return record_types()[name].from_plain(first.plain) if first.since <= revision else None
    return image.table(record_types()[name]).get(row) if image.revision_of(key) <= revision else None


def states_of(image: MetadataImage, resource: str, revision: int) -> dict[str, Any]:
    """All that the resource has or has had, by the keys of the store, as it was at a revision; None for nothing."""
    former: dict[str, list[FormerValue]] = {}
    for value in image.former_values.values():
        name, _, row = value.key.partition("/")
        record_type = record_types()[name]
        rollback = record_type.rollback
        if rollback is not None and rollback.resource(row, record_type.from_plain(value.plain)) == resource:
            former.setdefault(value.key, []).append(value)
    present = (
        record_type.key(row)
        for record_type in record_types().values()
        if record_type.rollback is not None
        for row, state in image.table(record_type).items()
        if record_type.rollback.resource(row, state) == resource
    )
    return {
        key: _value_at(image, key, revision, former.get(key, ()))
        for key in dict.fromkeys([*present, *former])
    }
