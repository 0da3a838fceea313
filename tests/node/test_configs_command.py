"""`barnabas configs` against a broker."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from barnabas.cli.main import app
from barnabas.testing import EmbeddedBroker

Run = Callable[..., Result]


@pytest.fixture
def run(kafka: EmbeddedBroker) -> Run:
    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["configs", *arguments], env={"BARNABAS_BOOTSTRAP": kafka.bootstrap})

    return invoke


def rows(result: Result) -> list[list[str]]:
    assert result.exit_code == 0, result.output
    return [line.split() for line in result.stdout.splitlines()[1:]]


def test_topic_configs_are_set_appended_subtracted_and_deleted(kafka: EmbeddedBroker, run: Run) -> None:
    kafka.create_topic("t")
    assert rows(run("get", "topic", "t")) == []
    done = run("set", "topic", "t", "retention.ms=5", "cleanup.policy+=compact")
    assert done.stdout == "topic t: retention.ms, cleanup.policy altered\n"
    assert rows(run("get", "topic", "t")) == [
        ["cleanup.policy", "delete,compact", "dynamic_topic_config"],
        ["retention.ms", "5", "dynamic_topic_config"],
    ]
    assert run("set", "topic", "t", "cleanup.policy-=delete").exit_code == 0
    assert run("delete", "topic", "t", "retention.ms").exit_code == 0
    assert rows(run("get", "topic", "t")) == [["cleanup.policy", "compact", "dynamic_topic_config"]]
    assert rows(run("get", "topic", "t", "retention.ms")) == [["retention.ms", "604800000", "default_config"]]
    assert len(rows(run("get", "topic", "t", "--all"))) > 30


def test_every_resource_type_has_configs(kafka: EmbeddedBroker, run: Run) -> None:
    own = str(kafka.server.broker.broker_id)
    for kind, name, setting in [
        ("broker", own, "log.retention.ms=1"),
        ("broker", "default", "log.retention.ms=2"),
        ("group", "g", "consumer.session.timeout.ms=46000"),
        ("client-metrics", "m", "interval.ms=1000"),
    ]:
        assert run("set", kind, name, setting).exit_code == 0
        assert setting.split("=") in [row[:2] for row in rows(run("get", kind, name))]
    assert run("set", "logger", own, "barnabas.net=ERROR").exit_code == 0
    assert rows(run("get", "logger", own, "barnabas.net"))[0][1] == "ERROR"
    assert run("delete", "logger", own, "barnabas.net").exit_code == 0
    assert rows(run("list", "group", "client-metrics")) == [["client-metrics", "m"], ["group", "g"]]
    assert ["broker", own] in rows(run("list"))


def test_secrets_come_from_a_file_and_are_not_shown(kafka: EmbeddedBroker, run: Run, tmp_path: Path) -> None:
    own = str(kafka.server.broker.broker_id)
    key = "listener.name.plaintext.ssl.keystore.password"
    file = tmp_path / "secrets.properties"
    file.write_text(f"{key}=do not tell\n")
    assert run("set", "broker", own, "--file", str(file)).exit_code == 0
    assert rows(run("get", "broker", own, key)) == [[key, "(hidden)", "dynamic_broker_config"]]
    assert "do not tell" not in run("get", "broker", own, "--all", "--json").stdout


def test_output_as_json(kafka: EmbeddedBroker, run: Run) -> None:
    kafka.create_topic("t", configs={"max.message.bytes": "5"})
    shown = json.loads(run("get", "topic", "t", "--json").stdout)
    assert (shown["kind"], shown["name"]) == ("topic", "t")
    assert shown["configs"] == [
        {
            "config": "max.message.bytes",
            "value": "5",
            "source": "DYNAMIC_TOPIC_CONFIG",
            "read_only": False,
            "sensitive": False,
            "synonyms": [
                {"config": "max.message.bytes", "value": "5", "source": "DYNAMIC_TOPIC_CONFIG"},
                {"config": "message.max.bytes", "value": "1048588", "source": "DEFAULT_CONFIG"},
            ],
        }
    ]
    altered = json.loads(run("set", "topic", "t", "segment.ms=7", "--validate-only", "--json").stdout)
    assert altered == {"kind": "topic", "name": "t", "altered": ["segment.ms"], "validate_only": True}
    assert json.loads(run("list", "topic", "--json").stdout) == [{"kind": "topic", "name": "t"}]


def test_validating_changes_nothing(kafka: EmbeddedBroker, run: Run) -> None:
    kafka.create_topic("t")
    done = run("set", "topic", "t", "retention.ms=5", "--validate-only")
    assert done.stdout == "topic t: retention.ms could be altered\n"
    assert rows(run("get", "topic", "t")) == []


def test_keys_that_exist_are_shown_beside_those_that_do_not(kafka: EmbeddedBroker, run: Run) -> None:
    kafka.create_topic("t")
    result = run("get", "topic", "t", "retention.ms", "no.key")
    assert result.exit_code == 3
    assert "604800000" in result.stdout
    assert run("get", "broker", "default", "log.retention.ms").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "exit_code", "part"),
    [
        (("get", "topic", "gone"), 3, "'gone'"),
        (("get", "topic", "t", "retention.mss"), 3, "topic t has no config 'retention.mss'"),
        (("set", "topic", "gone", "retention.ms=5"), 3, "'gone'"),
        (("set", "topic", "t", "retention.ms=soon"), 1, "'soon'"),
        (("set", "topic", "t", "retention.ms"), 2, "key=value"),
        (("set", "topic", "t"), 2, "nothing to set"),
        (("set", "broker", "one", "log.retention.ms=5"), 2, "the broker id must be a number"),
        (("set", "logger", "default", "root=INFO"), 2, "must be a number"),
        (("get", "shoe", "t"), 2, "client-metrics"),
    ],
)
def test_failures_are_explained(
    kafka: EmbeddedBroker, run: Run, arguments: tuple[str, ...], exit_code: int, part: str
) -> None:
    kafka.create_topic("t")
    result = run(*arguments)
    assert result.exit_code == exit_code, result.output
    assert part in result.output
