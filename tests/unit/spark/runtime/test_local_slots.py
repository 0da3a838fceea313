"""The slots of a local master, from command lines of processes."""

import os
from pathlib import Path

import pytest

from pyspark_barnabas.runtime.local_slots import local_slots_count

ALL = len(os.sched_getaffinity(0))


def processes(directory: Path, *jvm: str) -> Path:
    """Write the files of a planner (30), its daemon (20), and a JVM with these arguments (10)."""
    for pid, parent, arguments in ((30, 20, ["python"]), (20, 10, ["python"]), (10, 1, ["java", *jvm])):
        (directory / str(pid)).mkdir()
        (directory / str(pid) / "cmdline").write_text("".join(f"{each}\0" for each in arguments))
        (directory / str(pid) / "stat").write_text(f"{pid} (a (b) c) S {parent} 7 7 0")
    return directory


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        (("--conf", "spark.master=local[4]", "pyspark-shell"), 4),
        (("--conf", "spark.master=local", "pyspark-shell"), 1),
        (("--master", "local[3,5]", "app.py"), 3),
        (("--master=local[*]", "app.py"), ALL),
        (("--master", "spark://10.0.0.1:7077", "app.py"), None),
        (("--master", "local-cluster[2,1,1024]", "app.py"), None),
        (("app.py",), None),
    ],
)
def test_a_local_master_has_slots(tmp_path: Path, arguments: tuple[str, ...], count: int | None) -> None:
    assert local_slots_count(processes(tmp_path, *arguments), 30) == count


def test_without_processes_to_look_at_nothing_is_known(tmp_path: Path) -> None:
    assert local_slots_count(tmp_path, 30) is None


def test_a_process_without_a_jvm_has_no_slots() -> None:
    assert local_slots_count() is None
