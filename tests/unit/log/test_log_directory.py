import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from barnabas.base.ids import TopicPartition, uuid_to_text
from barnabas.log.log_directory import (
    LogDirectory,
    LogDirectoryError,
    parse_partition,
    random_directory_id,
    renamed_directory,
)

HOLD_LOCK = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.lockf(fd, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("t-0", TopicPartition("t", 0)),
        ("a-b.c_d-12", TopicPartition("a-b.c_d", 12)),
        ("t-0.0123456789abcdef-delete", None),
        ("t-0.0123456789abcdef-stray", None),
        ("t-0.0123456789abcdef-future", None),
        ("__cluster_metadata-0", None),
        ("lost+found", None),
        ("t", None),
        ("t-", None),
        ("-1", None),
    ],
)
def test_the_partition_is_parsed_from_the_directory_name(name: str, partition: TopicPartition | None) -> None:
    assert parse_partition(name) == partition


def test_renamed_directories_fit_into_a_file_name() -> None:
    name = renamed_directory(TopicPartition("t" * 249, 123456), Random(0), "-delete")
    assert len(name) == 255
    assert name.endswith("-delete")
    assert parse_partition(name) is None
    short = renamed_directory(TopicPartition("t", 0), Random(0), "-stray")
    assert short.startswith("t-0.")
    assert len(short) == len("t-0.") + 32 + len("-stray")


def test_printed_directory_ids_never_begin_with_a_dash() -> None:
    random = Random(0)
    assert not any(uuid_to_text(random_directory_id(random)).startswith("-") for _ in range(2_000))


def test_one_process_locks_a_directory_once(tmp_path: Path) -> None:
    first, second = LogDirectory(tmp_path / "d"), LogDirectory(tmp_path / "d")
    first.lock()
    try:
        with pytest.raises(LogDirectoryError, match="in use by this process"):
            second.lock()
    finally:
        first.unlock()
    second.lock()
    second.unlock()
    second.unlock()


def test_a_directory_locked_by_another_process_cannot_be_locked(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD_LOCK, str(tmp_path / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(LogDirectoryError, match=f"{tmp_path} is in use by another process"):
            LogDirectory(tmp_path).lock()
        assert holder.stdin is not None
        holder.stdin.close()
    directory = LogDirectory(tmp_path)
    directory.lock()
    directory.unlock()


def test_a_path_that_is_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LogDirectoryError, match="file cannot be written to: "):
        LogDirectory(tmp_path / "file").lock()


def test_a_new_directory_is_assigned_to_this_node(tmp_path: Path) -> None:
    first, second = LogDirectory(tmp_path), LogDirectory(tmp_path)
    first.identify("c", 1, Random(0))
    second.identify("c", 1, Random(9))
    assert len(first.directory_id) == 16
    assert first.directory_id == second.directory_id


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "message"),
    [("other", 1, "belongs to cluster c, not to other"), ("c", 2, "belongs to node 1, not to node 2")],
)
def test_a_directory_of_another_cluster_or_node_is_rejected(
    tmp_path: Path, cluster_id: str, node_id: int, message: str
) -> None:
    LogDirectory(tmp_path).identify("c", 1, Random(0))
    with pytest.raises(LogDirectoryError, match=message):
        LogDirectory(tmp_path).identify(cluster_id, node_id, Random(0))


def test_an_older_directory_without_an_id_gets_one(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    with pytest.raises(LogDirectoryError, match="belongs to cluster c"):
        LogDirectory(tmp_path).identify("other", 1, Random(0))
    LogDirectory(tmp_path).identify("c", 1, Random(0))
    assert "directory.id=" in (tmp_path / "meta.properties").read_text()


def test_damaged_properties_raise_a_log_directory_error(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("nonsense")
    with pytest.raises(LogDirectoryError, match="cluster"):
        LogDirectory(tmp_path).identify("c", 1, Random(0))


def test_the_clean_shutdown_marker_is_written_and_removed(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path)
    assert not directory.has_clean_shutdown_marker
    directory.write_clean_shutdown_marker(7)
    assert json.loads((tmp_path / ".kafka_cleanshutdown").read_text()) == {"version": 0, "brokerEpoch": 7}
    assert directory.clean_shutdown_epoch() == 7
    assert directory.has_clean_shutdown_marker
    directory.remove_clean_shutdown_marker()
    directory.remove_clean_shutdown_marker()
    assert not directory.has_clean_shutdown_marker


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"brokerEpoch": null}'])
def test_a_damaged_clean_shutdown_marker_has_no_epoch(tmp_path: Path, content: str) -> None:
    (tmp_path / ".kafka_cleanshutdown").write_text(content)
    assert LogDirectory(tmp_path).clean_shutdown_epoch() is None


def test_a_damaged_checkpoint_is_read_as_empty(tmp_path: Path) -> None:
    (tmp_path / "recovery-point-offset-checkpoint").write_text("nonsense")
    assert LogDirectory(tmp_path).read_checkpoint("recovery-point-offset-checkpoint") == {}


def test_only_directories_of_partitions_are_found(tmp_path: Path) -> None:
    future = "a-b-2.0123456789abcdef0123456789abcdef-future"
    for name in ("b-1", "a-10", "a-9", "x-0.00-delete", "x-0.00-stray", "notes", future):
        (tmp_path / name).mkdir()
    (tmp_path / "c-1").touch()
    directory = LogDirectory(tmp_path)
    partitions = [(str(name), path.name) for name, path in directory.partitions_on_disk()]
    assert partitions == [("a-9", "a-9"), ("a-10", "a-10"), ("a-b-2", future), ("b-1", "b-1")]
    assert directory.leftovers() == [tmp_path / "x-0.00-delete"]
    assert os.path.isabs(directory.path)
