import struct
from pathlib import Path

import pytest

from barnabas.log.segments.transaction_index import AbortedTransaction, TransactionIndex
from barnabas.wire.errors import ErrorCode, KafkaError

FIRST = AbortedTransaction(9, 0, 4, 1)
SECOND = AbortedTransaction(10, 1, 7, 8)
THIRD = AbortedTransaction(9, 8, 11, 12)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / f"{0:020d}.txnindex"


@pytest.fixture
def index(path: Path) -> TransactionIndex:
    index = TransactionIndex(path)
    for aborted in (FIRST, SECOND, THIRD):
        index.append(aborted)
    return index


def collected(index: TransactionIndex, start: int, end: int) -> tuple[list[AbortedTransaction], bool]:
    collected_transactions: list[AbortedTransaction] = []
    return collected_transactions, index.collect(start, end, collected_transactions)


def test_there_is_no_file_until_something_is_aborted(path: Path) -> None:
    index = TransactionIndex(path)
    assert collected(index, 0, 100) == ([], False)
    index.truncate_to(0)
    assert not path.exists()


def test_every_abort_is_written_immediately_in_kafkas_format(index: TransactionIndex, path: Path) -> None:
    assert path.read_bytes() == b"".join(struct.pack(">hqqqq", 0, *entry) for entry in (FIRST, SECOND, THIRD))
    assert TransactionIndex(path).entries == [FIRST, SECOND, THIRD]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 1, ([FIRST], True)),  # the last stable offset was 1 when the first one was aborted
        (0, 2, ([FIRST, SECOND], True)),
        (5, 8, ([SECOND], True)),
        (5, 9, ([SECOND, THIRD], True)),
        (8, 12, ([THIRD], True)),
        (8, 13, ([THIRD], False)),
        (12, 20, ([], False)),
    ],
)
def test_the_transactions_of_a_range_are_collected(
    index: TransactionIndex, start: int, end: int, expected: object
) -> None:
    assert collected(index, start, end) == expected


@pytest.mark.parametrize(("offset", "expected_count"), [(12, 3), (11, 2), (8, 2), (7, 1), (4, 0), (0, 0)])
def test_truncation_removes_the_markers_from_its_offset_on(
    index: TransactionIndex, path: Path, offset: int, expected_count: int
) -> None:
    index.truncate_to(offset)
    expected = [FIRST, SECOND, THIRD][:expected_count]
    assert index.entries == TransactionIndex(path).entries == expected


def test_a_released_index_is_read_again(index: TransactionIndex) -> None:
    index.release()
    assert index.entries == [FIRST, SECOND, THIRD]


def test_a_cleared_index_has_no_file(index: TransactionIndex, path: Path) -> None:
    index.clear()
    assert not path.exists()
    assert not index.entries
    index.append(THIRD)
    assert TransactionIndex(path).entries == [THIRD]


@pytest.mark.parametrize("data", [b"\0" * 33, struct.pack(">hqqqq", 1, 1, 2, 3, 4)])
def test_the_error_for_a_damaged_file_contains_its_name(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    index = TransactionIndex(path)
    assert not index.is_sound
    with pytest.raises(KafkaError, match=path.name) as error:
        index.append(FIRST)
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE
