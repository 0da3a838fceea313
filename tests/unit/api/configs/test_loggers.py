from collections.abc import Iterator

import pytest

from barnabas.api.configs.loggers import alter_levels
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.telemetry.logs import clear_level, get_logger, levels, set_level
from barnabas.wire.errors import ErrorCode, KafkaError

SET, DELETE, APPEND, SUBTRACT = OpType
LOGGER = get_logger("barnabas.test.loggers").name


@pytest.fixture(autouse=True)
def _levels_as_before() -> Iterator[None]:
    before = levels()["root"]
    yield
    set_level("root", before)
    clear_level(LOGGER)


def test_a_level_is_set_and_deleted() -> None:
    alter_levels([AlterConfigOp(LOGGER, SET, "DEBUG")], validate_only=False)
    assert levels()[LOGGER] == "DEBUG"
    alter_levels([AlterConfigOp(LOGGER, DELETE)], validate_only=False)
    assert levels()[LOGGER] == levels()["root"]


def test_the_root_level_applies_to_loggers_without_their_own() -> None:
    alter_levels([AlterConfigOp("root", SET, "FATAL")], validate_only=False)
    assert levels()[LOGGER] == "FATAL"


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (AlterConfigOp("no.such.logger", SET, "INFO"), ErrorCode.INVALID_CONFIG),
        (AlterConfigOp("no.such.logger", DELETE), ErrorCode.INVALID_CONFIG),
        (AlterConfigOp(LOGGER, SET, "debug"), ErrorCode.INVALID_CONFIG),
        (AlterConfigOp(LOGGER, SET, "OFF"), ErrorCode.INVALID_CONFIG),
        (AlterConfigOp(LOGGER, SET, None), ErrorCode.INVALID_REQUEST),
        (AlterConfigOp(LOGGER, APPEND, "INFO"), ErrorCode.INVALID_REQUEST),
        (AlterConfigOp("root", DELETE), ErrorCode.INVALID_REQUEST),
    ],
)
def test_an_invalid_edit_is_rejected_with_the_edits_beside_it(edit: AlterConfigOp, code: ErrorCode) -> None:
    other = get_logger("barnabas.test.other").name
    before = levels()
    with pytest.raises(KafkaError) as caught:
        alter_levels([AlterConfigOp(other, SET, "TRACE"), edit], validate_only=False)
    assert caught.value.code is code
    assert levels() == before


def test_validate_only_changes_nothing() -> None:
    alter_levels([AlterConfigOp(LOGGER, SET, "TRACE")], validate_only=True)
    assert levels()[LOGGER] != "TRACE"
