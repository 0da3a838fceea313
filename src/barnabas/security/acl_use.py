"""When ACLs were created and used, and what they have decided, kept in a file of the broker over restarts."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barnabas.log.files import write_atomically
from barnabas.telemetry.logs import get_logger
from barnabas.wire.acls import AclDecision, AclOperation, ResourceType

#: The name that the file had before several brokers could share a directory of metadata.
FORMER_FILE = "acl-use.json"

#: How often it is written, and how often a decision that is cached counts as use.
INTERVAL_MS = 600_000

_log = get_logger("barnabas.security")


@dataclass(frozen=True, slots=True)
class AclUseRecord:
    """Times are in ms since the epoch; ACLs are named by their keys in the metadata."""

    since_ms: int  #: the start of the record
    decisions_since_ms: int  #: the start of the record of decisions
    last_used_ms: Mapping[str, int] = field(default_factory=dict)
    created_ms: Mapping[str, int] = field(
        default_factory=dict
    )  #: of ACLs created since the start of the record
    decisions: Iterable[AclDecision] = ()  #: the decisions used last come last
    left_out_count: int = 0  #: decisions that had no room

    @classmethod
    def empty(cls, now_ms: int) -> "AclUseRecord":
        return cls(now_ms, now_ms)


def acl_use_path(directory: Path, broker_id: int) -> Path:
    """Return the file of a broker, beside that of the metadata."""
    return directory / f"acl-use-{broker_id}.json"


def read_acl_use(directory: Path, broker_id: int, now_ms: int) -> AclUseRecord:
    """Return the stored record, or an empty one that begins now if the file is missing or damaged."""
    for path in (acl_use_path(directory, broker_id), directory / FORMER_FILE):
        try:
            return _from_plain(json.loads(path.read_text(encoding="utf-8")), now_ms)
        except FileNotFoundError:
            continue
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            _log.warning(
                "cannot read when ACLs were used; the record begins now", path=str(path), why=str(error)
            )
            break
    return AclUseRecord.empty(now_ms)


def _from_plain(plain: Any, now_ms: int) -> AclUseRecord:
    decisions = plain.get("decisions", {"since_ms": now_ms, "left_out_count": 0, "decided": []})
    return AclUseRecord(
        int(plain["since_ms"]),
        int(decisions["since_ms"]),
        _times(plain["last_used_ms"]),
        _times(plain.get("created_ms", {})),
        [
            AclDecision(
                str(principal),
                str(host),
                AclOperation(operation),
                ResourceType(resource_type),
                None if name is None else str(name),
                bool(is_allowed),
                int(used_ms),
            )
            for principal, host, operation, resource_type, name, is_allowed, used_ms in decisions["decided"]
        ],
        int(decisions["left_out_count"]),
    )


def _times(plain: Any) -> dict[str, int]:
    return {key: int(time_ms) for key, time_ms in plain.items()}


def write_acl_use(directory: Path, broker_id: int, record: AclUseRecord) -> None:
    """Write the record. Blocks. A disk error is logged: the record is not worth a failed log directory."""
    path = acl_use_path(directory, broker_id)
    plain = {
        "since_ms": record.since_ms,
        "last_used_ms": dict(record.last_used_ms),
        "created_ms": dict(record.created_ms),
        "decisions": {
            "since_ms": record.decisions_since_ms,
            "left_out_count": record.left_out_count,
            "decided": list(record.decisions),
        },
    }
    try:
        write_atomically(path, json.dumps(plain).encode(), sync=False)
        (directory / FORMER_FILE).unlink(missing_ok=True)  # else it would be read if this one is removed
    except OSError as error:
        _log.warning("cannot write when ACLs were used", path=str(path), why=str(error))
