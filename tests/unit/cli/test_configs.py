from pathlib import Path

import pytest

from barnabas.cli.configs import parse_edits
from barnabas.cli.support.config_resources import ConfigResourceKind, parse_resource
from barnabas.cli.support.failures import CommandError
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind

SET, _, APPEND, SUBTRACT = OpType


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        ("retention.ms=5", AlterConfigOp("retention.ms", SET, "5")),
        ("my-key=a=b", AlterConfigOp("my-key", SET, "a=b")),
        ("cleanup.policy=", AlterConfigOp("cleanup.policy", SET, "")),
        ("cleanup.policy+=compact", AlterConfigOp("cleanup.policy", APPEND, "compact")),
        ("cleanup.policy-=delete", AlterConfigOp("cleanup.policy", SUBTRACT, "delete")),
    ],
)
def test_a_setting_is_parsed_literally(text: str, edit: AlterConfigOp) -> None:
    assert parse_edits([text], None) == [edit]


def test_settings_of_a_file_are_applied_first(tmp_path: Path) -> None:
    file = tmp_path / "more.properties"
    file.write_text("# secrets\nssl.key.password = a+b\n")
    assert parse_edits(["retention.ms=5"], file) == [
        AlterConfigOp("ssl.key.password", SET, "a+b"),
        AlterConfigOp("retention.ms", SET, "5"),
    ]


@pytest.mark.parametrize("values", [[], ["retention.ms"], ["=5"], ["+=5"]])
def test_a_command_without_changes_is_a_usage_error(values: list[str]) -> None:
    with pytest.raises(CommandError):
        parse_edits(values, None)


def test_resource_types_have_short_names() -> None:
    assert parse_resource(ConfigResourceKind.TOPIC, "default") == Resource(ResourceKind.TOPIC, "default")
    assert parse_resource(ConfigResourceKind.BROKER, "default") == Resource(ResourceKind.BROKER, "")
    assert parse_resource(ConfigResourceKind.LOGGER, "1") == Resource(ResourceKind.BROKER_LOGGER, "1")
    assert parse_resource(ConfigResourceKind.CLIENT_METRICS, "m") == Resource(
        ResourceKind.CLIENT_METRICS, "m"
    )
    with pytest.raises(CommandError, match="must be a number"):
        parse_resource(ConfigResourceKind.LOGGER, "default")
