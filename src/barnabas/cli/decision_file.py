"""The file of recorded decisions: a line of JSON for each, after one about the authorizer."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from barnabas.cli.acl_options import format_enum
from barnabas.cli.support.failures import CommandError, wrong_use
from barnabas.client.admin.acl_decisions import last_decisions
from barnabas.log.files import write_atomically
from barnabas.wire.acls import AclDecision, AclOperation, DecisionRecord, ResourceType


def read_decisions(path: Path) -> DecisionRecord:
    """Return the record in a file. Lines may be missing, also the first.

    :raises CommandError: If a line is not valid.
    :raises OSError: If the file cannot be read.
    """
    about, decisions = DecisionRecord(0, ()), []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            plain = json.loads(line)
            if "principal" in plain:
                decisions.append(_decision(plain))
            else:
                about = _about(plain)
        except (ValueError, LookupError, TypeError, AttributeError):
            raise _invalid(path, number) from None
    return about._replace(decisions=decisions)


def _invalid(path: Path, number: int) -> CommandError:
    """Return an error without the line, because a wrong file may have secrets."""
    message = f"{path}, line {number} is not a recorded decision"
    return wrong_use(message, "'barnabas acls record FILE' writes such a file")


def _about(plain: dict[str, Any]) -> DecisionRecord:
    return DecisionRecord(
        int(plain["since_ms"]),
        (),
        int(plain["left_out_count"]),
        frozenset(map(str, plain["super_users"])),
        bool(plain["allows_if_no_acl"]),
    )


def _decision(plain: dict[str, Any]) -> AclDecision:
    name = plain["name"]
    return AclDecision(
        str(plain["principal"]),
        str(plain["host"]),
        AclOperation[_member_name(plain["operation"])],
        ResourceType[_member_name(plain["resource"])],
        None if name is None else str(name),
        bool(plain["allowed"]),
        int(plain["last_used_ms"]),
    )


def _member_name(word: str) -> str:
    return word.upper().replace("-", "_")


def add_decisions(path: Path, record: DecisionRecord) -> DecisionRecord:
    """Add a record to a file, which is created if it is missing; return the whole.

    :raises CommandError: If the file has something else.
    :raises OSError: If it cannot be read or written.
    """
    if path.exists():
        known = read_decisions(path)
        decisions = last_decisions([*known.decisions, *record.decisions])
        record = record._replace(since_ms=min(known.since_ms, record.since_ms), decisions=decisions)
    write_atomically(path, "".join(_lines(record)).encode(), sync=False)
    return record


def _lines(record: DecisionRecord) -> Iterator[str]:
    about = {
        "since_ms": record.since_ms,
        "left_out_count": record.left_out_count,
        "super_users": sorted(record.super_users),
        "allows_if_no_acl": record.allows_if_no_acl,
    }
    yield json.dumps(about) + "\n"
    for decision in record.decisions:
        yield json.dumps({**as_row(decision), "last_used_ms": decision.last_used_ms}) + "\n"


def as_row(decision: AclDecision) -> dict[str, object]:
    return {
        "principal": decision.principal,
        "host": decision.host,
        "operation": format_enum(decision.operation),
        "resource": format_enum(decision.resource_type),
        "name": decision.name,
        "allowed": decision.is_allowed,
    }
