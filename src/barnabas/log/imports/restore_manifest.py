"""What a job hands over to a broker: segments, and a manifest that says what log they make."""

import json
import re
from pathlib import Path
from typing import NamedTuple

from barnabas.wire.errors import ErrorCode, KafkaError

#: In the directory of a partition.
HANDOVER = "handover"
MANIFEST_FILE = "handover.json"
_VERSION = 1
_SEGMENT = re.compile(r"\d{20}\.log")


class Handover(NamedTuple):
    """What a manifest says of the files beside it: the log that they make, of the topic with this id."""

    topic_id: bytes
    start_offset: int
    end_offset: int

    def to_json(self) -> str:
        """The text of the manifest."""
        return json.dumps(
            {
                "version": _VERSION,
                "kind": "log",
                "topicId": self.topic_id.hex(),
                "startOffset": self.start_offset,
                "endOffset": self.end_offset,
            }
        )


def read_handover(directory: Path) -> Handover:
    """What was handed over.

    :raises KafkaError: INVALID_REQUEST when the manifest is none, or other files than segments are there.
    """
    try:
        fields = json.loads((directory / MANIFEST_FILE).read_text())
        if (fields["version"], fields["kind"]) != (_VERSION, "log"):
            raise ValueError(f"version {fields['version']} of kind '{fields['kind']}' is not known")
        found = Handover(
            bytes.fromhex(fields["topicId"]), int(fields["startOffset"]), int(fields["endOffset"])
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{directory / MANIFEST_FILE} cannot be used: {type(error).__name__}: {error}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, message) from error
    for path in directory.iterdir():
        is_known = path.name == MANIFEST_FILE or _SEGMENT.fullmatch(path.name)
        if not is_known or not path.is_file() or path.is_symlink():
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{path} is no segment of a log")
    return found
