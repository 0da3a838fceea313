from pathlib import Path

import pytest

from pyspark_barnabas.paths import PathError, pattern_of, table_flaw, uri


def test_only_sparks_glob_characters_are_escaped_and_only_for_readers() -> None:
    path = Path("/a b%20#1/[x] {y,z} q? s*\\")
    assert uri(path) == "file:/a b%20#1/[x] {y,z} q? s*\\"
    assert pattern_of(path) == "file:/a b%20#1/\\[x\\] \\{y,z\\} q\\? s\\*\\\\"
    assert pattern_of(Path("/a b"), "/*") == "file:/a b/*"


def test_a_colon_is_rejected_where_hadoop_cannot_read_it() -> None:
    assert pattern_of(Path("/a:b")) == "file:/a:b"
    for path, below in ((Path("/a:b [x]"), ""), (Path("/a:b"), "/*")):
        with pytest.raises(PathError, match=r"^/a:b.* colon .*rename the directory"):
            pattern_of(path, below)


def test_a_relative_path_becomes_absolute() -> None:
    assert uri(Path("a")) == f"file:{Path.cwd() / 'a'}"


def test_paths_that_delta_rs_misinterprets_are_not_tables() -> None:
    assert table_flaw(Path("/a b#1 50%/{x}")) is None
    for path in ("/a[b", "/a]b", "/a%20b"):
        assert table_flaw(Path(path)) is not None
