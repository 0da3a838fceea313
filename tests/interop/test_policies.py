"""The same policies in Java on Apache Kafka and in Python on Barnabas get the same arguments and have the same
results.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages import alter_configs, incremental_alter_configs
from barnabas.wire.messages.create_topics import CreatableTopic
from interop import reference
from support.admin import create, new_topic
from support.policies import NAMING, policy_module
from support.wire import Wire

JAVA = Path(reference.__file__).parent / "reference" / "policies"

PYTHON = """
from barnabas.policy import AlterConfigPolicy, CreateTopicPolicy, PolicyViolation


def shown(value):
    if value is None:
        return "null"
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    return str(value)


def shown_map(items):
    return "{" + ", ".join(f"{key}={shown(items[key])}" for key in sorted(items)) + "}"


class EchoTopics(CreateTopicPolicy):
    def configure(self, configs):
        self.setting = shown(configs.get("acme.setting"))

    def validate(self, request):
        if request.topic.startswith("crash"):
            raise RuntimeError("crash")
        if not request.topic.startswith("ok"):
            assigned = request.replicas_assignments
            counts = (shown(request.num_partitions), shown(request.replication_factor))
            where = "null" if assigned is None else shown_map(assigned)
            raise PolicyViolation("|".join([self.setting, request.topic, *counts, where, shown_map(request.configs)]))


class EchoConfigs(AlterConfigPolicy):
    def validate(self, request):
        flush = request.configs.get("flush.ms")
        if flush == "13":
            raise RuntimeError("crash")
        if flush is None:
            kind, name = request.resource
            raise PolicyViolation("|".join([kind.name, name, shown_map(request.configs)]))
"""

SETTINGS = {"num.partitions": "3", "acme.setting": "here", "node.id": "1"}
KEYS = ("create.topic.policy.class.name", "alter.config.policy.class.name")
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND = 0, 1, 2


class Sides(NamedTuple):
    kafka: Wire
    barnabas: Wire


def settings_with(*class_names: str) -> dict[str, str]:
    return SETTINGS | dict(zip(KEYS, class_names, strict=True))


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    classes = tmp_path_factory.mktemp("classes")
    command = ["javac", "-cp", f"{reference.fetch()}/*", "-d", classes, *JAVA.glob("*.java")]
    subprocess.run(command, check=True)
    with (
        reference.kafka(settings_with("EchoTopics", "EchoConfigs"), classes=classes) as kafka,
        policy_module(tmp_path_factory.mktemp("python"), PYTHON) as module,
        EmbeddedBroker(settings_with(module.named("EchoTopics"), module.named("EchoConfigs"))) as barnabas,
        Wire(int(kafka.bootstrap.rpartition(":")[2])) as of_kafka,
        Wire(barnabas.port) as of_barnabas,
    ):
        for wire in (of_kafka, of_barnabas):
            assert (
                create(wire, new_topic("ok", configs={"flush.ms": "1", "retention.ms": "1000"}))[
                    "ok"
                ].error_code
                == 0
            )
        yield Sides(of_kafka, of_barnabas)


def policy_message(error_code: int, message: str | None) -> tuple[ErrorCode, str | None]:
    """Return a policy's own message; other messages differ between brokers."""
    return ErrorCode(error_code), message if error_code == ErrorCode.POLICY_VIOLATION else None


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize("version", [2, 7])
@pytest.mark.parametrize(
    ("topics", "codes"),
    [
        ([new_topic("t")], [ErrorCode.POLICY_VIOLATION]),
        ([new_topic("t", 5, 1)], [ErrorCode.POLICY_VIOLATION]),
        ([new_topic("t", assignments={1: [1], 0: [1]})], [ErrorCode.POLICY_VIOLATION]),
        ([new_topic("t", configs={"retention.ms": "05"})], [ErrorCode.POLICY_VIOLATION]),
        ([new_topic("t", configs={"retention.ms": "5", "flush.ms": "7"})], [ErrorCode.POLICY_VIOLATION]),
        ([new_topic("crash")], [ErrorCode.UNKNOWN_SERVER_ERROR]),
        ([new_topic("ok2", configs={"flush.ms": "13"})], [ErrorCode.UNKNOWN_SERVER_ERROR]),
        ([new_topic("ok")], [ErrorCode.TOPIC_ALREADY_EXISTS]),
        ([new_topic("t", 1, 2)], [ErrorCode.INVALID_REPLICATION_FACTOR]),
        ([new_topic("t", 0)], [ErrorCode.INVALID_PARTITIONS]),
        ([new_topic("t", configs={"flush.ms": "x"})], [ErrorCode.INVALID_CONFIG]),
        ([new_topic("?")], [ErrorCode.INVALID_TOPIC_EXCEPTION]),
        (
            [new_topic("t"), new_topic("?"), new_topic("ok")],
            [ErrorCode.POLICY_VIOLATION, ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_ALREADY_EXISTS],
        ),
    ],
)
def test_creation_of_a_topic(
    sides: Sides, topics: list[CreatableTopic], codes: list[ErrorCode], version: int, validate_only: bool
) -> None:
    answers = []
    for wire in sides:
        results = create(wire, *topics, version=version, validate_only=validate_only)
        answers.append(
            {name: policy_message(each.error_code, each.error_message) for name, each in results.items()}
        )
    assert answers[1] == answers[0]
    assert [answers[1][topic.name][0] for topic in topics] == codes


Edits = list[tuple[str, int, str | None]]


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize(
    ("kind", "name", "edits"),
    [
        (TOPIC, "ok", [("retention.ms", SET, "5")]),
        (TOPIC, "ok", [("retention.ms", SET, "1000")]),
        (TOPIC, "ok", [("retention.ms", SET, "1000"), ("segment.ms", SET, "5")]),
        (TOPIC, "ok", [("retention.ms", DELETE, None), ("segment.ms", DELETE, None)]),
        (TOPIC, "ok", [("cleanup.policy", APPEND, "compact")]),
        (TOPIC, "ok", [("flush.ms", SET, "13")]),
        (TOPIC, "ok", [("flush.ms", SET, "1")]),
        (TOPIC, "ok", []),
        (TOPIC, "missing", [("retention.ms", SET, "5")]),
        (TOPIC, "ok", [("retention.ms", SET, "x")]),
        (BROKER, "", [("log.retention.ms", SET, "5")]),
        (BROKER, "1", [("log.cleaner.threads", SET, "1"), ("log.retention.ms", DELETE, None)]),
    ],
)
def test_incrementally_altered_configs(
    sides: Sides, kind: int, name: str, edits: Edits, validate_only: bool
) -> None:
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[
            incremental_alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    incremental_alter_configs.AlterableConfig(
                        name=key, config_operation=operation, value=value
                    )
                    for key, operation, value in edits
                ],
            )
        ],
        validate_only=validate_only,
    )
    [by_kafka, by_barnabas] = [wire.ask(request).responses for wire in sides]
    assert [policy_message(each.error_code, each.error_message) for each in by_barnabas] == [
        policy_message(each.error_code, each.error_message) for each in by_kafka
    ]


@pytest.mark.parametrize(
    ("kind", "name", "configs"),
    [
        (TOPIC, "ok", {"retention.ms": "5"}),
        (TOPIC, "ok", {"retention.ms": "1000"}),
        (TOPIC, "ok", {}),
        (BROKER, "1", {"log.cleaner.threads": "1", "log.retention.ms": "5"}),
    ],
)
def test_replaced_configs(sides: Sides, kind: int, name: str, configs: dict[str, str]) -> None:
    request = alter_configs.AlterConfigsRequest(
        resources=[
            alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    alter_configs.AlterableConfig(name=key, value=value) for key, value in configs.items()
                ],
            )
        ],
        validate_only=True,
    )
    [by_kafka, by_barnabas] = [wire.ask(request).responses for wire in sides]
    assert [policy_message(each.error_code, each.error_message) for each in by_barnabas] == [
        policy_message(each.error_code, each.error_message) for each in by_kafka
    ]


def test_kafkas_tools_show_a_policys_message(tmp_path: Path) -> None:
    with (
        policy_module(tmp_path, NAMING) as module,
        EmbeddedBroker({KEYS[0]: module.named("Naming")}) as barnabas,
    ):
        where = ("--bootstrap-server", barnabas.bootstrap)
        refused = reference.tool("kafka-topics", *where, "--create", "--topic", "t", check=False)
        assert refused.returncode == 1
        assert "PolicyViolationException: t must begin with team." in refused.stdout + refused.stderr
        created = reference.tool("kafka-topics", *where, "--create", "--topic", "team.t")
        assert "Created topic team.t." in created.stdout
