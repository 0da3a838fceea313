"""The events of a day: event n is made from n alone, so whoever makes it makes the same one."""

import json
from collections.abc import Iterable, Iterator

import pyarrow as pa

ITEMS = ("lamp", "desk", "chair", "shelf", "sofa", "rug", "clock", "mirror")
START_MS = 1_772_323_200_000  # 2026-03-01
DAY_MS = 86_400_000
CUSTOMERS = 20_000
ORDERS_PERCENT = 30

_MASK = 2**64 - 1


def event(number: int, count: int) -> bytes:
    """The event of a number below `count`; `count` itself is the end of the day after.

    Of a thousand, three are cut off, one is not UTF-8, one has a word for a number, two cost less than nothing,
    twenty are up to 20 minutes late and two by hours.
    """
    chance = _mixed(number)
    sent_ms = START_MS + number * DAY_MS // count
    late_ms = chance % 5_000
    fate = (chance >> 40) % 1_000
    if 100 <= fate < 120:
        late_ms = chance % 1_200_000
    elif fate in (120, 121):
        late_ms = 7_200_000 + chance % 14_400_000
    at_ms = max(sent_ms - late_ms, START_MS)
    is_order = (chance >> 20) % 100 < ORDERS_PERCENT
    kind, cents = ("order", 100 + (chance >> 24) % 50_000) if is_order else ("click", 0)
    if number == count:
        kind, cents, fate, at_ms, sent_ms = "end", 0, 999, sent_ms + DAY_MS, sent_ms + DAY_MS
    elif fate in (130, 131):
        cents = -1
    price = '"dear"' if fate == 4 else cents
    text = (
        f'{{"id":{number},"kind":"{kind}","customer":"c{(chance >> 8) % CUSTOMERS}",'
        f'"item":"{ITEMS[_popular(chance)]}","cents":{price},"at_ms":{at_ms},"sent_ms":{sent_ms}}}'
    )
    if fate < 3:
        return text[: len(text) // 2].encode()
    return b"\xff" + text.encode() if fate == 3 else text.encode()


def numbered(batches: Iterable[pa.RecordBatch], count: int) -> Iterator[pa.RecordBatch]:
    """The events of batches of numbers."""
    for batch in batches:
        values = [event(number, count) for number in batch.column(0).to_pylist()]
        yield pa.record_batch({"value": pa.array(values, pa.binary())})


def decoded(value: bytes) -> dict[str, object] | None:
    """An event's fields; None where it has none."""
    try:
        found = json.loads(value)
    except ValueError:  # which also says that it is not UTF-8
        return None
    return found if isinstance(found["cents"], int) else None


def _mixed(number: int) -> int:
    """64 bits that look like chance (SplitMix64)."""
    mixed = (number + 1) * 0x9E3779B97F4A7C15 & _MASK
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
    return mixed ^ mixed >> 31


def _popular(chance: int) -> int:
    """The first items are bought more often."""
    return min((chance >> 12) % len(ITEMS), (chance >> 16) % len(ITEMS))
