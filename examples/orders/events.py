"""The events of a day: event n is computed from n alone, so every process computes the same one."""

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
    """Return the event of a number below `count`; `count` itself is the end of the next day.

    Of a thousand events, three are cut off, one is not UTF-8, one has a string as price, two have a negative price,
    twenty are up to 20 minutes late, and two are hours late.
    """
    bits = _mixed(number)
    sent_ms = START_MS + number * DAY_MS // count
    late_ms = bits % 5_000
    flaw = (bits >> 40) % 1_000
    if 100 <= flaw < 120:
        late_ms = bits % 1_200_000
    elif flaw in (120, 121):
        late_ms = 7_200_000 + bits % 14_400_000
    at_ms = max(sent_ms - late_ms, START_MS)
    is_order = (bits >> 20) % 100 < ORDERS_PERCENT
    kind, cents = ("order", 100 + (bits >> 24) % 50_000) if is_order else ("click", 0)
    if number == count:
        kind, cents, flaw, at_ms, sent_ms = "end", 0, 999, sent_ms + DAY_MS, sent_ms + DAY_MS
    elif flaw in (130, 131):
        cents = -1
    price = '"dear"' if flaw == 4 else cents
    text = (
        f'{{"id":{number},"kind":"{kind}","customer":"c{(bits >> 8) % CUSTOMERS}",'
        f'"item":"{ITEMS[_popular(bits)]}","cents":{price},"at_ms":{at_ms},"sent_ms":{sent_ms}}}'
    )
    if flaw < 3:
        return text[: len(text) // 2].encode()
    return b"\xff" + text.encode() if flaw == 3 else text.encode()


def numbered(batches: Iterable[pa.RecordBatch], count: int) -> Iterator[pa.RecordBatch]:
    """Replace batches of numbers by their events."""
    for batch in batches:
        values = [event(number, count) for number in batch.column(0).to_pylist()]
        yield pa.record_batch({"value": pa.array(values, pa.binary())})


def decoded(value: bytes) -> dict[str, object] | None:
    """Return the fields of an event, or None if it is not valid."""
    try:
        found = json.loads(value)
    except ValueError:  # also if it is not UTF-8
        return None
    return found if isinstance(found["cents"], int) else None


def _mixed(number: int) -> int:
    """Return 64 pseudorandom bits (SplitMix64)."""
    mixed = (number + 1) * 0x9E3779B97F4A7C15 & _MASK
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
    return mixed ^ mixed >> 31


def _popular(bits: int) -> int:
    """Return the index of an item; the first items are bought more often."""
    return min((bits >> 12) % len(ITEMS), (bits >> 16) % len(ITEMS))
