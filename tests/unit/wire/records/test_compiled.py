import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import barnabas
from barnabas.wire.records.compiled import cache_directory

#: Imports of a broker, its cleaner, the command line and a client.
LIGHT = (
    "barnabas.server.main",
    "barnabas.log.compaction.cleaner",
    "barnabas.cli.main",
    "barnabas.client.producer.producer",
    "barnabas.testing.plugin",
)
HEAVY = ("numpy", "numba", "pyarrow")

SOURCE = Path(barnabas.__file__).parents[1]

#: Prints how often a kernel's machine code was found in the cache, and how often not.
USE = """
from barnabas.wire.records.batches_numba import find_last, read_last_header
read_last_header(b"")
print(sum(find_last.stats.cache_hits.values()), sum(find_last.stats.cache_misses.values()))
"""


COMPILED = "from barnabas.wire.records.compiled import compiled\n"
PAIR = "from collections import namedtuple\n"


def run(code: str, **environment: str) -> str:
    process = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return process.stdout.strip()


def test_the_broker_does_not_import_the_kernels_dependencies() -> None:
    imports = "; ".join(f"import {name}" for name in LIGHT)
    assert run(f"import sys; {imports}; print([name for name in {HEAVY} if name in sys.modules])") == "[]"


def test_a_process_does_not_compile_what_another_has_compiled(tmp_path: Path) -> None:
    assert run(USE, NUMBA_CACHE_DIR=str(tmp_path)) == "0 1"
    assert run(USE, NUMBA_CACHE_DIR=str(tmp_path)) == "1 0"


@pytest.mark.parametrize(
    ("size", "imported", "changed"),
    [
        ("SIZE", "SIZE = 1", "SIZE = 2"),
        ("SIZE()", f"{COMPILED}SIZE = compiled(lambda: 1)", f"{COMPILED}SIZE = compiled(lambda: 2)"),
        ("SIZE(1, 2).a", f"{PAIR}SIZE = namedtuple('P', 'a b')", f"{PAIR}SIZE = namedtuple('P', 'b a')"),
    ],
    ids=["constant", "function", "fields"],
)
def test_a_kernel_is_compiled_again_when_something_that_it_imports_has_changed(
    tmp_path: Path, size: str, imported: str, changed: str
) -> None:
    (tmp_path / "kernel.py").write_text(
        f"{COMPILED}from imported import SIZE\n@compiled\ndef size():\n    return {size}\n"
    )
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import kernel; print(kernel.size())"
    for source, result in ((imported, "1"), (changed, "2"), (changed, "2")):
        (tmp_path / "imported.py").write_text(source)
        assert run(code, NUMBA_CACHE_DIR=str(tmp_path), PYTHONDONTWRITEBYTECODE="1") == result


def test_a_kernel_is_compiled_again_when_the_class_of_an_argument_has_another_name(tmp_path: Path) -> None:
    for name in ("Former", "Present"):
        (tmp_path / "kernel.py").write_text(
            f"{COMPILED}from typing import NamedTuple\n"
            f"class {name}(NamedTuple):\n    size: int\n"
            "@compiled\ndef size(sized):\n    return sized.size\n"
        )
        code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import kernel; print(kernel.size(kernel.{name}(3)))"
        assert run(code, NUMBA_CACHE_DIR=str(tmp_path), PYTHONDONTWRITEBYTECODE="1") == "3"


def test_kernels_work_without_a_writable_directory() -> None:
    for _ in range(2):
        assert run(USE, NUMBA_CACHE_DIR="/proc/nowhere") == "0 1"


def test_spark_workers_compile_missing_kernels_wherever_the_archive_is(
    tmp_path: Path,
) -> None:
    for name, counts in (("one", "0 1"), ("another", "1 0")):
        archive = shutil.make_archive(str(tmp_path / name / "packages"), "zip", SOURCE, "barnabas")
        where = "import barnabas; print(barnabas.__file__);"
        found = run(where + USE, PYTHONPATH=archive, XDG_CACHE_HOME=str(tmp_path)).split("\n")
        assert (found[0].startswith(archive), found[1]) == (True, counts)


def test_other_users_of_numba_keep_their_cache() -> None:
    before = numba.config.CACHE_DIR
    run("import numba; before = numba.config.CACHE_DIR; " + USE + "assert numba.config.CACHE_DIR == before")
    assert before == numba.config.CACHE_DIR


def test_compiled_functions_are_in_the_users_cache_or_in_numbas_configured_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache_directory.cache_clear()
    in_cache, chosen = cache_directory(""), cache_directory(str(tmp_path / "chosen"))
    cache_directory.cache_clear()
    assert in_cache is not None
    assert Path(in_cache).parent == tmp_path / "barnabas" / "numba"
    assert chosen == str(tmp_path / "chosen" / Path(in_cache).name)


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    cache_directory.cache_clear()
    assert cache_directory("") is None
    cache_directory.cache_clear()


def no_home() -> Path:
    raise RuntimeError
