"""Policies in a running broker, over real sockets, and in a process that reloads them on SIGHUP."""

import os
import pty
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)

from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode
from support.admin import create, delete, describe, grow, more_partitions, new_topic
from support.policies import HEAD, NAMING, PolicyModule, policy_module
from support.process import BrokerProcess, run_serve
from support.waiting import until
from support.wire import Wire

CREATE_TOPIC = "create.topic.policy.class.name"

SLOW = (
    HEAD
    + """
import time

class Sleeps(Logged):
    def validate(self, request):
        if request.topic == "slow":
            time.sleep(30)
"""
)


@pytest.fixture
def naming(tmp_path: Path) -> Iterator[PolicyModule]:
    with policy_module(tmp_path, NAMING) as module:
        yield module


def test_a_topic_that_violates_the_policy_is_created_by_no_api(naming: PolicyModule) -> None:
    with EmbeddedBroker({CREATE_TOPIC: naming.named("Naming")}) as kafka, Wire(kafka.port) as wire:
        results = create(wire, new_topic("t"), new_topic("team.t"))
        assert results["t"].error_code == ErrorCode.POLICY_VIOLATION
        assert results["t"].error_message == "t must begin with team."
        assert results["team.t"].error_code == ErrorCode.NONE
        assert create(wire, new_topic("u"), validate_only=True)["u"].error_code == ErrorCode.POLICY_VIOLATION
        names = ["auto", "team.auto", "__consumer_offsets"]
        describe(wire, *names, auto_create=True)
        found = {topic.name: topic.error_code for topic in describe(wire, *names).topics}
        assert found == dict.fromkeys(names, ErrorCode.NONE) | {"auto": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert set(kafka.topics()) == {"team.t", "team.auto"}
    assert naming.calls[-1] == ("close",)


def test_other_clients_are_served_while_a_policy_runs(tmp_path: Path) -> None:
    with policy_module(tmp_path, SLOW) as module:
        settings = {CREATE_TOPIC: module.named("Sleeps"), "barnabas.policy.timeout.ms": "700"}
        with EmbeddedBroker(settings) as kafka, Wire(kafka.port) as wire, Wire(kafka.port) as other:
            results: list[ErrorCode] = []
            creating = threading.Thread(
                target=lambda: results.append(create(wire, new_topic("slow"))["slow"].error_code)
            )
            creating.start()
            while not kafka.server.policies.statistics()["checks_count"]:
                time.sleep(0.001)
            assert describe(other).brokers
            assert not results
            creating.join()
            assert results == [ErrorCode.UNKNOWN_SERVER_ERROR]
            assert create(wire, new_topic("quick"))["quick"].error_code == ErrorCode.NONE


def served(tmp_path: Path, class_name: str) -> BrokerProcess:
    return BrokerProcess(
        tmp_path / "data",
        *("--set", f"{CREATE_TOPIC}={class_name}"),
        environment={
            "PYTHONPATH": os.pathsep.join([str(tmp_path), *os.environ.get("PYTHONPATH", "").split(":")])
        },
    )


def error_code(broker: BrokerProcess, topic: str) -> int:
    with Wire(broker.port) as wire:
        return create(wire, new_topic(topic), validate_only=True)[topic].error_code


def await_line(broker: BrokerProcess, words: str) -> None:
    """Wait until the broker has logged a line with these words."""

    def is_logged() -> bool:
        assert broker.process.poll() is None, broker.stderr
        return any(words in line for line in broker.errors)

    until(is_logged)


def test_sighup_reloads_the_code_or_keeps_the_old_code_on_failure(tmp_path: Path) -> None:
    module = PolicyModule(tmp_path)
    module.write(NAMING)
    with served(tmp_path, module.named("Naming")) as broker:
        assert error_code(broker, "team.t") == ErrorCode.NONE
        module.write(NAMING.replace("team.", "crew."))
        broker.process.send_signal(signal.SIGHUP)
        await_line(broker, "policies reloaded")
        assert error_code(broker, "team.t") == ErrorCode.POLICY_VIOLATION
        module.write("1 +")
        broker.process.send_signal(signal.SIGHUP)
        await_line(broker, "cannot reload policies; the previous ones stay in force")
        assert any("SyntaxError" in line for line in broker.errors)
        assert error_code(broker, "team.t") == ErrorCode.POLICY_VIOLATION
        assert error_code(broker, "crew.t") == ErrorCode.NONE
        with Wire(broker.port) as wire:
            describe(wire, "auto", auto_create=True)
        await_line(broker, "auto must begin with crew.")
        assert broker.terminate() == 0


def test_a_policy_that_cannot_be_loaded_is_exit_code_2(tmp_path: Path) -> None:
    where = ("--data", str(tmp_path), "--listen", "127.0.0.1:0")
    ended = run_serve(*where, "--set", f"{CREATE_TOPIC}=not_there:Naming")
    assert ended.returncode == 2
    error = ended.stderr.splitlines()[-1]
    assert error.startswith(f"barnabas: Invalid value 'not_there:Naming' for {CREATE_TOPIC}: ")
    assert "No module named 'not_there'" in error
    assert "Traceback" not in ended.stderr


def test_a_broker_stops_when_its_terminal_is_closed(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    with BrokerProcess(tmp_path, stdin=slave) as broker:
        os.close(slave)
        os.close(master)
        broker.process.send_signal(signal.SIGHUP)
        assert broker.process.wait(30) == 0


RULES = """
topics:
  - prefix: pay
    protected: true
  - partitions: {max: 3}
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "policies.yaml"
    path.write_text(RULES)
    return path


def test_a_protected_topic_cannot_be_deleted_or_grown_and_others_can(rules: Path) -> None:
    with EmbeddedBroker({"barnabas.policy.file": str(rules)}) as kafka, Wire(kafka.port) as wire:
        create(wire, new_topic("pay"), new_topic("t"))
        grown = grow(wire, more_partitions("pay", 2), more_partitions("t", 4), more_partitions("t2", 2))
        assert grown["pay"].error_code == ErrorCode.POLICY_VIOLATION
        assert "'pay' is protected" in (grown["pay"].error_message or "")
        assert grown["t"].error_code == ErrorCode.POLICY_VIOLATION
        assert grown["t2"].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert grow(wire, more_partitions("t", 3))["t"].error_code == ErrorCode.NONE
        for topic in ("pay", wire.topic_id("pay")):
            [protected, gone] = delete(wire, topic, "t9")
            assert protected.error_code == ErrorCode.POLICY_VIOLATION
            assert "'pay' is protected" in (protected.error_message or "")
            assert gone.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        [deleted] = delete(wire, "t")
        assert deleted.error_code == ErrorCode.NONE
        assert kafka.topics() == {"pay": 1}


def test_invalid_rules_are_exit_code_2(rules: Path, tmp_path: Path) -> None:
    rules.write_text("topics:\n  - partitions: {maximum: 3}\n")
    where = ("--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0")
    ended = run_serve(*where, "--set", f"barnabas.policy.file={rules}")
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1] == (
        f"barnabas: Invalid value '{rules}' for barnabas.policy.file: "
        "line 2: unknown key 'maximum' in topics[0].partitions; did you mean max?"
    )


def test_sighup_reloads_the_rules_or_keeps_the_old_rules_on_failure(rules: Path, tmp_path: Path) -> None:
    setting = f"barnabas.policy.file={rules}"
    with BrokerProcess(tmp_path / "data", "--set", setting) as broker, Wire(broker.port) as wire:
        assert (
            create(wire, new_topic("t", 4), validate_only=True)["t"].error_code == ErrorCode.POLICY_VIOLATION
        )
        rules.write_text("topics:\n  - partitions: {max: many}\n")
        broker.process.send_signal(signal.SIGHUP)
        await_line(broker, "line 2: topics[0].partitions.max is 'many': must be a whole number of at least 1")
        assert (
            create(wire, new_topic("t", 4), validate_only=True)["t"].error_code == ErrorCode.POLICY_VIOLATION
        )
        rules.write_text("topics:\n  - partitions: {max: 4}\n")
        broker.process.send_signal(signal.SIGHUP)
        await_line(broker, "policies reloaded")
        assert create(wire, new_topic("t", 4), validate_only=True)["t"].error_code == ErrorCode.NONE


def error_of(futures: Mapping[object, Any]) -> tuple[int, str]:
    """Return the error that a user of confluent-kafka gets for the only request."""
    [future] = futures.values()
    with pytest.raises(KafkaException) as caught:
        future.result(20)
    error: KafkaError = caught.value.args[0]
    return error.code(), error.str()


def test_a_real_client_gets_the_policys_message(rules: Path) -> None:
    with EmbeddedBroker({"barnabas.policy.file": str(rules)}) as kafka:
        kafka.create_topic("pay")
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        code = KafkaError.POLICY_VIOLATION
        protected = "Topic 'pay' is protected: "
        too_many = "Topic 't' has 4 partitions: it must be at most 3."
        assert error_of(admin.create_topics([NewTopic("t", 4)])) == (code, too_many)
        assert error_of(admin.delete_topics(["pay"]))[0] == code  # the client uses a version without messages
        grown = admin.create_partitions([NewPartitions("pay", 3)])
        assert error_of(grown) == (code, f"{protected}no partitions may be added.")
        setting = ConfigEntry("retention.ms", "1", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, "pay", incremental_configs=[setting])
        altered = admin.incremental_alter_configs([resource])
        assert error_of(altered) == (code, f"{protected}its configs must not be altered.")


def test_policy_results_are_counted_in_metrics(rules: Path) -> None:
    settings = {"barnabas.policy.file": str(rules), "barnabas.metrics.listener": "127.0.0.1:0"}
    with EmbeddedBroker(settings) as kafka, Wire(kafka.port) as wire:
        create(wire, new_topic("t", 4), new_topic("u"))
        with urlopen(f"http://127.0.0.1:{kafka.server.metrics_port}/metrics") as page:
            lines = page.read().decode().splitlines()
    assert 'barnabas_policy_checks_total{outcome="checked"} 2.0' in lines
    assert 'barnabas_policy_checks_total{outcome="refused"} 1.0' in lines
    assert 'barnabas_policy_reloads_total{outcome="done"} 0.0' in lines
