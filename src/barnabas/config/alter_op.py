"""Single changes of configs, as IncrementalAlterConfigs carries them (KIP-339)."""

import enum
from typing import NamedTuple


class Operation(enum.IntEnum):
    """What an edit does to a config (`AlterConfigOp.OpType`)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Edit(NamedTuple):
    """One config as it is to change; DELETE needs no value."""

    key: str
    operation: Operation
    value: str | None = None
