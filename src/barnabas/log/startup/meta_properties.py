"""Reads and writes `meta.properties`: the cluster and node that a log directory belongs to (KIP-631, KIP-858)."""

from pathlib import Path
from typing import NamedTuple

from barnabas.base.ids import uuid_from_text, uuid_to_text
from barnabas.log.checkpoints import MalformedFile
from barnabas.log.files import write_atomically

META_PROPERTIES_FILE = "meta.properties"


class MetaProperties(NamedTuple):
    """The identity of a log directory."""

    cluster_id: str
    node_id: int
    #: 16 bytes; None for a directory written by an older Kafka.
    directory_id: bytes | None


def read_meta_properties(directory: Path) -> MetaProperties | None:
    """Return the identity of a log directory, or None if it was never used.

    :raises MalformedFile: When the file lacks a property or has a value that is not valid.
    """
    path = directory / META_PROPERTIES_FILE
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return None
    fields = dict(_property(line) for line in lines if line.strip() and line.lstrip()[0] not in "#!")
    try:
        directory_id = uuid_from_text(fields["directory.id"]) if "directory.id" in fields else None
        return MetaProperties(fields["cluster.id"], int(fields["node.id"]), directory_id)
    except (KeyError, ValueError) as error:
        raise MalformedFile(f"{path}: expected cluster.id, node.id and directory.id: {error}") from error


def _property(line: str) -> tuple[str, str]:
    key, _, value = line.partition("=")
    return key.strip(), value.strip().replace("\\", "")


def write_meta_properties(directory: Path, meta: MetaProperties) -> None:
    """Write the identity of a log directory. Blocks."""
    assert meta.directory_id is not None
    text = (
        f"#\nversion=1\ncluster.id={meta.cluster_id}\nnode.id={meta.node_id}\n"
        f"directory.id={uuid_to_text(meta.directory_id)}\n"
    )
    write_atomically(directory / META_PROPERTIES_FILE, text.encode())
