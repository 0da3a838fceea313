"""Manifest of segment files that a job wrote for a broker to import, and the log that they make."""

import json
import re
from pathlib import Path
from typing import NamedTuple

from barnabas.wire.errors import ErrorCode, KafkaError

#: Subdirectory of the partition's log directory.
IMPORT_DIRECTORY = "import"
MANIFEST_FILE = "import.json"
_VERSION = 1
_SEGMENT = re.compile(r"\d{20}\.log")


class ImportManifest(NamedTuple):
    """The log that the segment files next to the manifest make, for the topic with this id."""

    topic_id: bytes
    start_offset: int
    end_offset: int

    def to_json(self) -> str:
        """Return the text of the manifest."""
        return json.dumps(
            {
                "version": _VERSION,
                "kind": "log",
                "topicId": self.topic_id.hex(),
                "startOffset": self.start_offset,
                "endOffset": self.end_offset,
            }
        )


def read_import_manifest(directory: Path) -> ImportManifest:
    """Read the manifest in `directory`.

    :raises KafkaError: INVALID_REQUEST when the manifest is not valid, or if there are files other than segments.
    """
    try:
        fields = json.loads((directory / MANIFEST_FILE).read_text())
        if (fields["version"], fields["kind"]) != (_VERSION, "log"):
            raise ValueError(f"unsupported version {fields['version']} of kind '{fields['kind']}'")
        manifest = ImportManifest(
            bytes.fromhex(fields["topicId"]), int(fields["startOffset"]), int(fields["endOffset"])
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"cannot use {directory / MANIFEST_FILE}: {type(error).__name__}: {error}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, message) from error
    for path in directory.iterdir():
        is_known = path.name == MANIFEST_FILE or _SEGMENT.fullmatch(path.name)
        if not is_known or not path.is_file() or path.is_symlink():
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{path} is not a segment file")
    return manifest
