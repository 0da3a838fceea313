"""Single changes of configs, as IncrementalAlterConfigs carries them (KIP-339)."""

import enum
from typing import NamedTuple


class OpType(enum.IntEnum):
    """What an edit does to a config (`AlterConfigOp.OpType`)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class AlterConfigOp(NamedTuple):
    """One config as it is to change; DELETE needs no value."""

    key: str
    operation: OpType
    value: str | None = None
