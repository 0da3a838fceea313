"""Requests that the store takes in parts only, some of which fail."""

from collections.abc import Sequence

import pytest

from barnabas.metadata.parts import write_parts
from barnabas.metadata.store import CommitTooLarge
from barnabas.wire.errors import ErrorCode, KafkaError
from support.loop import on_loop

UNKNOWN = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no answer")


class Store:
    """Takes two letters at a time, none of which is `x`, and does not answer for `?`."""

    def __init__(self) -> None:
        self.written = ""

    async def write(self, part: Sequence[str]) -> list[str]:
        if len(part) > 2 or "x" in part:
            raise CommitTooLarge("too many keys")
        if "?" in part:
            raise UNKNOWN
        self.written += "".join(part)
        return [letter.upper() for letter in part]


def failed(letter: str, error: KafkaError) -> str:
    return f"{letter}: {error.code.name}"


async def outcomes(store: Store, letters: str) -> list[str]:
    return await write_parts(letters, store.write, failed, key=lambda letter: letter)


@on_loop
async def test_one_item_that_is_too_large_does_not_fail_the_others() -> None:
    store = Store()
    assert await outcomes(store, "abxcd") == ["A", "B", "x: UNKNOWN_SERVER_ERROR", "C", "D"]
    assert store.written == "abcd"


@on_loop
async def test_after_a_failure_of_the_store_no_further_part_is_tried() -> None:
    store = Store()
    expected = ["A", "B", "?: REQUEST_TIMED_OUT", "c: REQUEST_TIMED_OUT", "d: UNKNOWN_SERVER_ERROR"]
    assert (await outcomes(store, "ab?cdefg"))[:5] == expected
    assert store.written == "ab"


@on_loop
async def test_a_request_of_which_nothing_was_written_fails_as_a_whole() -> None:
    with pytest.raises(CommitTooLarge):
        await outcomes(Store(), "x")
    with pytest.raises(KafkaError, match="no answer"):
        await outcomes(Store(), "?bcd")
