from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.log.checkpoints import (
    MalformedFile,
    read_checkpoint,
    read_offsets,
    read_partition_metadata,
    write_offsets,
    write_partition_metadata,
)


def test_offsets_are_written_as_kafka_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    offsets = {TopicPartition("b", 10): 7, TopicPartition("a", 0): 12345678901}
    write_offsets(path, offsets)
    assert path.read_text() == "0\n2\na 0 12345678901\nb 10 7\n"
    assert read_offsets(path) == offsets
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_file_is_an_empty_checkpoint(tmp_path: Path) -> None:
    assert read_offsets(tmp_path / "none") == {}


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "line 1"),
        (b"1\n0\n", "line 1"),
        (b"0\n", "line 2"),
        (b"0\n2\na 0 1\n", "line 2"),
        (b"0\nx\na 0 1\n", "line 2"),
        (b"0\n1\na 0\n", "line 3"),
        (b"0\n1\na zero 1\n", "line 3"),
        (b"\xff\xfe\n", "not a text file"),
    ],
)
def test_the_error_for_a_damaged_file_contains_the_line(tmp_path: Path, content: bytes, line: str) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(content)
    with pytest.raises(MalformedFile, match=line):
        read_checkpoint(path, (str, int, int))


def test_partition_metadata_is_written_as_kafka_writes_it(tmp_path: Path) -> None:
    write_partition_metadata(tmp_path, bytes(range(16)))
    text = "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert (tmp_path / "partition.metadata").read_text() == text
    assert read_partition_metadata(tmp_path) == bytes(range(16))


def test_a_partition_without_metadata_has_no_topic_id(tmp_path: Path) -> None:
    assert read_partition_metadata(tmp_path) is None


@pytest.mark.parametrize("text", ["version: 0", "version: 0\ntopic_id: short", "nonsense"])
def test_damaged_partition_metadata_is_rejected(tmp_path: Path, text: str) -> None:
    (tmp_path / "partition.metadata").write_text(text)
    with pytest.raises(MalformedFile, match="topic_id"):
        read_partition_metadata(tmp_path)
