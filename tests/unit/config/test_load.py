from pathlib import Path

import pytest

from barnabas.config.definition import ConfigError
from barnabas.config.keys.broker import BROKER_KEYS
from barnabas.config.listeners import ListenerAddress
from barnabas.config.load import (
    ConfigWarning,
    environment_name,
    load_broker_config,
    nearest_key,
    read_properties,
)
from barnabas.server.bootstrap_users import VARIABLE
from barnabas.server.supervisor import SUPERVISED
from barnabas.tables.supervision import PROCESS_VARIABLE


def test_without_settings_there_are_no_warnings() -> None:
    loaded = load_broker_config()
    assert loaded.warnings == ()
    assert loaded.config.node_id == 1


def test_the_environment_overrides_the_file_and_the_command_line_overrides_both() -> None:
    file = {"num.partitions": "2", "log.retention.ms": "2", "broker.rack": "a"}
    environment = {"BARNABAS_NUM_PARTITIONS": "3", "BARNABAS_LOG_RETENTION_MS": "3", "PATH": "/bin"}
    config = load_broker_config(file=file, environment=environment, settings=["num.partitions=4"]).config
    assert config.integer("num.partitions") == 4
    assert config.integer("log.retention.ms") == 3
    assert config.text("broker.rack") == "a"


def test_barnabas_own_keys_lose_their_prefix_in_the_environment() -> None:
    environment = {"BARNABAS_METRICS_LISTENER": "127.0.0.1:9100", "BARNABAS_LOG_LEVEL": "DEBUG"}
    config = load_broker_config(environment=environment).config
    assert config.text("barnabas.metrics.listener") == "127.0.0.1:9100"
    assert config.text("barnabas.log.level") == "DEBUG"


@pytest.mark.parametrize("variable", [SUPERVISED, PROCESS_VARIABLE, VARIABLE])
def test_variables_of_barnabas_that_are_no_settings_cause_no_warning(variable: str) -> None:
    assert load_broker_config(environment={variable: "x"}).warnings == ()


def test_no_two_keys_share_an_environment_variable() -> None:
    assert len({environment_name(key) for key in BROKER_KEYS}) == len(BROKER_KEYS)


def test_an_unknown_name_is_a_warning_with_the_nearest_key() -> None:
    loaded = load_broker_config(
        file={"num.partition": "3"}, environment={"BARNABAS_LOG_DIR_S": "/a"}, settings=["zzz=1"]
    )
    assert loaded.warnings == (
        ConfigWarning("num.partition", "num.partitions", "file"),
        ConfigWarning("log.dir.s", "log.dirs", "environment"),
        ConfigWarning("zzz", None, "--set"),
    )
    assert [str(warning) for warning in loaded.warnings[::2]] == [
        "Unknown configuration num.partition (file); did you mean num.partitions?",
        "Unknown configuration zzz (--set)",
    ]


def test_keys_of_plug_ins_and_listeners_are_known() -> None:
    file = {"super.users": "User:a", "rsm.config.x": "1", "listener.name.a.ssl.client.auth": "none"}
    assert load_broker_config(file=file).warnings == ()


def test_an_invalid_value_is_rejected_from_any_source() -> None:
    for sources in (
        {"file": {"num.partitions": "0"}},
        {"environment": {"BARNABAS_NUM_PARTITIONS": "0"}},
        {"settings": ["num.partitions=0"]},
    ):
        with pytest.raises(ConfigError, match=r"'0' for num\.partitions: must be at least 1"):
            load_broker_config(**sources)


def test_inconsistent_keys_are_rejected() -> None:
    with pytest.raises(ConfigError, match=r"broker\.id"):
        load_broker_config(settings=["node.id=1", "broker.id=2"])


@pytest.mark.parametrize("setting", ["num.partitions", "=3", " = 3"])
def test_a_setting_has_a_key_and_a_value(setting: str) -> None:
    with pytest.raises(ConfigError, match="must be key=value"):
        load_broker_config(settings=[setting])


def test_a_setting_may_have_more_equal_signs_and_an_empty_value() -> None:
    config = load_broker_config(settings=["broker.rack=a=b", "cordoned.log.dirs="]).config
    assert config.text("broker.rack") == "a=b"
    assert config.items("cordoned.log.dirs") == ()


def test_kafkas_default_server_properties_load() -> None:
    loaded = load_broker_config(file=read_properties(Path(__file__).with_name("server.properties")))
    assert loaded.warnings == ()
    assert loaded.config.log_dirs == ("/tmp/kraft-combined-logs",)
    assert [listener.name for listener in loaded.config.listeners] == ["PLAINTEXT"]
    assert loaded.config.listeners[0].advertised == ListenerAddress("localhost", 9092)
    assert [listener.port for listener in loaded.config.controller_listeners] == [9093]


def test_a_missing_or_invalid_file_is_reported_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere.*No such file"):
        read_properties(tmp_path / "nowhere")
    broken = tmp_path / "broken.properties"
    broken.write_bytes(b"a=\xff")
    with pytest.raises(ConfigError, match=r"broken\.properties.*UTF-8"):
        read_properties(broken)


def test_the_nearest_key_is_similar_or_none() -> None:
    assert nearest_key("log.segement.bytes") == "log.segment.bytes"
    assert nearest_key("completely.different") is None
