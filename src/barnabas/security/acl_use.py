"""When ACLs were last used, kept in a file of the broker, so that a restart does not forget it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from barnabas.log.files import write_atomically
from barnabas.telemetry.logs import get_logger

#: The file, beside that of the metadata.
FILE = "acl-use.json"

#: How often it is written, and how often a decision that is cached counts as use.
INTERVAL_MS = 600_000

_log = get_logger("barnabas.security")


@dataclass(frozen=True, slots=True)
class AclUseRecord:
    """Times are in ms since the epoch."""

    since_ms: int  #: the start of the record
    #: key of the ACL in the metadata -> last use
    last_used_ms: Mapping[str, int] = field(default_factory=dict)


def read_acl_use(directory: Path, now_ms: int) -> AclUseRecord:
    """Return the stored record, or an empty one that begins now if the file is missing or damaged."""
    path = directory / FILE
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        return AclUseRecord(
            int(plain["since_ms"]), {key: int(used_ms) for key, used_ms in plain["last_used_ms"].items()}
        )
    except FileNotFoundError:
        pass
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        _log.warning("cannot read when ACLs were used; the record begins now", path=str(path), why=str(error))
    return AclUseRecord(now_ms)


def write_acl_use(directory: Path, record: AclUseRecord) -> None:
    """Write the record. Blocks. A disk error is logged: the record is not worth a failed log directory."""
    plain = {"since_ms": record.since_ms, "last_used_ms": dict(record.last_used_ms)}
    try:
        write_atomically(directory / FILE, json.dumps(plain).encode(), sync=False)
    except OSError as error:
        _log.warning("cannot write when ACLs were used", path=str(directory / FILE), why=str(error))
