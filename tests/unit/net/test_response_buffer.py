import os
from pathlib import Path

import pytest

from barnabas.net.response_buffer import CHUNK_BYTES, JOINED_CHUNK_BYTES_MAX, RecordsTruncated, ResponseBuffer
from support.mapped import mapped_file


def chunks(responses: ResponseBuffer) -> list[list[int]]:
    """Return the sizes of the buffers in each chunk."""
    sizes = []
    while chunk := responses.next_chunk():
        sizes.append([len(buffer) for buffer in chunk])
    return sizes


def test_responses_are_written_at_the_end_of_their_turn() -> None:
    responses = ResponseBuffer()
    responses.add([b"a", b"b"])
    assert responses.turn_bytes == 2
    assert responses.next_chunk() == []
    assert responses.end_turn() == 2
    assert responses.turn_bytes == 0
    assert responses.next_chunk() == [b"ab"]
    assert responses.next_chunk() == []


def test_large_responses_are_not_copied_and_written_in_chunks() -> None:
    responses = ResponseBuffer()
    part = bytes(CHUNK_BYTES // 2)
    responses.add([part] * 3 + [bytes(JOINED_CHUNK_BYTES_MAX)])
    responses.end_turn()
    first = responses.next_chunk()
    assert [buffer is part for buffer in first] == [True, True]
    assert chunks(responses) == [[len(part), JOINED_CHUNK_BYTES_MAX]]


def test_with_tls_a_large_buffer_is_split_into_chunks_without_a_copy() -> None:
    records = bytes(range(250)) * 40_000
    responses = ResponseBuffer()
    responses.splits_buffers = True
    responses.add([b"header", memoryview(records), b"end"])
    responses.end_turn()
    written = []
    while chunk := responses.next_chunk():
        assert sum(len(buffer) for buffer in chunk) < 2 * CHUNK_BYTES
        written += chunk
    assert b"".join(written) == b"header" + records + b"end"
    assert len(written) > len(records) // CHUNK_BYTES
    assert all(not isinstance(buffer, memoryview) or buffer.obj is records for buffer in written)


def test_without_tls_a_large_buffer_is_not_split() -> None:
    responses = ResponseBuffer()
    responses.add([bytes(10 * CHUNK_BYTES)])
    responses.end_turn()
    assert chunks(responses) == [[10 * CHUNK_BYTES]]


def test_nothing_is_left_after_clear() -> None:
    responses = ResponseBuffer()
    responses.add([b"unsent"])
    responses.end_turn()
    responses.add([b"turn"])
    responses.clear()
    assert (responses.end_turn(), responses.next_chunk()) == (0, [])


def test_records_of_a_truncated_log_are_not_joined_with_others(tmp_path: Path) -> None:
    records = mapped_file(tmp_path / "00.log", 5_000)
    responses = ResponseBuffer()
    responses.add([b"header", records])
    responses.end_turn()
    os.truncate(tmp_path / "00.log", 0)
    with pytest.raises(RecordsTruncated):
        responses.next_chunk()
