from pathlib import Path

import pytest

from barnabas.log.checkpoints import MalformedFile
from barnabas.log.startup.meta_properties import MetaProperties, read_meta_properties, write_meta_properties


def test_a_written_file_is_read_back(tmp_path: Path) -> None:
    meta = MetaProperties("cluster-1", 7, bytes(range(16)))
    write_meta_properties(tmp_path, meta)
    assert read_meta_properties(tmp_path) == meta
    lines = (tmp_path / "meta.properties").read_text().splitlines()
    assert lines[1:] == [
        "version=1",
        "cluster.id=cluster-1",
        "node.id=7",
        "directory.id=AAECAwQFBgcICQoLDA0ODw",
    ]


def test_a_file_from_kafka_is_read(tmp_path: Path) -> None:
    text = "#\n#Sat Nov 21 01:33:11 UTC 2026\nnode.id=1\ndirectory.id=ruh067SUTpidrVAy9lrUqg\nversion=1\n"
    (tmp_path / "meta.properties").write_text(text + "cluster.id=GZvM6TH0Tz2R4Ac480GT4A\\=\n")
    meta = read_meta_properties(tmp_path)
    assert meta is not None
    assert (meta.cluster_id, meta.node_id) == ("GZvM6TH0Tz2R4Ac480GT4A=", 1)


def test_a_directory_that_was_never_used_has_no_identity(tmp_path: Path) -> None:
    assert read_meta_properties(tmp_path) is None


@pytest.mark.parametrize(
    "text", ["", "cluster.id=c\n", "cluster.id=c\nnode.id=one\n", "cluster.id=c\nnode.id=1\ndirectory.id=x\n"]
)
def test_a_file_without_an_identity_is_rejected(tmp_path: Path, text: str) -> None:
    (tmp_path / "meta.properties").write_text(text)
    with pytest.raises(MalformedFile, match=r"meta\.properties: expected"):
        read_meta_properties(tmp_path)
