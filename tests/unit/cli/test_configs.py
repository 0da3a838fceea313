from pathlib import Path

import pytest

from barnabas.cli.failures import CommandError
from barnabas.cli.work.configs import deletions, resource, settings
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind

SET, DELETE, APPEND, SUBTRACT = OpType


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
    assert settings([text], None) == [edit]


def test_settings_of_a_file_are_applied_first(tmp_path: Path) -> None:
    file = tmp_path / "more.properties"
    file.write_text("# secrets\nssl.key.password = a+b\n")
    assert settings(["retention.ms=5"], file) == [
        AlterConfigOp("ssl.key.password", SET, "a+b"),
        AlterConfigOp("retention.ms", SET, "5"),
    ]


@pytest.mark.parametrize("values", [[], ["retention.ms"], ["=5"], ["+=5"]])
def test_a_command_without_changes_is_a_usage_error(values: list[str]) -> None:
    with pytest.raises(CommandError):
        settings(values, None)


def test_keys_are_deleted_without_values() -> None:
    assert deletions(["a", "b"]) == [AlterConfigOp("a", DELETE), AlterConfigOp("b", DELETE)]


def test_resource_types_have_short_names() -> None:
    assert resource("topic", "default") == Resource(ResourceKind.TOPIC, "default")
    assert resource("broker", "default") == Resource(ResourceKind.BROKER, "")
    assert resource("logger", "1") == Resource(ResourceKind.BROKER_LOGGER, "1")
    assert resource("client-metrics", "m") == Resource(ResourceKind.CLIENT_METRICS, "m")
    with pytest.raises(CommandError, match="must be a number"):
        resource("logger", "default")
