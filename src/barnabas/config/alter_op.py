"""Single config changes, as in IncrementalAlterConfigs (KIP-339)."""

import enum
from typing import NamedTuple


class OpType(enum.IntEnum):
    """The operation of a config change (`AlterConfigOp.OpType`)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class AlterConfigOp(NamedTuple):
    """A config change; DELETE needs no value."""

    key: str
    operation: OpType
    value: str | None = None
