"""Levels of this broker's loggers (BROKER_LOGGER, KIP-412). They are not stored."""

from collections.abc import Mapping, Sequence

from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.metadata.configs import check_edits
from barnabas.telemetry.logs import LEVELS, ROOT, clear_level, levels, set_level
from barnabas.wire.errors import ErrorCode, KafkaError


def alter_levels(edits: Sequence[AlterConfigOp], *, validate_only: bool) -> Mapping[str, tuple[str, str]]:
    """Set and clear levels, all or none; return each before and after.

    :raises KafkaError: INVALID_REQUEST for a list operation or the removal of root's level, INVALID_CONFIG for an
        unknown logger or level.
    """
    check_edits(edits)
    known = levels()
    for edit in edits:
        _check(edit, known)
    if validate_only:
        return {}
    for name, operation, level in edits:
        if operation is OpType.DELETE:
            clear_level(name)
        else:
            assert level is not None
            set_level(name, level)
    after = levels()
    return {edit.key: (known[edit.key], after[edit.key]) for edit in edits}


def _check(edit: AlterConfigOp, known: dict[str, str]) -> None:
    name, operation, level = edit
    if operation in (OpType.APPEND, OpType.SUBTRACT):
        message = (
            f"{operation.name} applies to lists only; set the level of logger '{name}' with SET or DELETE."
        )
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    if name not in known:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown logger '{name}': DescribeConfigs lists them.")
    if operation is OpType.DELETE and name == ROOT:
        message = "The level of the root logger cannot be deleted: use SET instead."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    if operation is OpType.SET and level not in LEVELS:
        message = f"'{level}' is not a log level for '{name}': it must be one of {', '.join(sorted(LEVELS))}."
        raise KafkaError(ErrorCode.INVALID_CONFIG, message)
