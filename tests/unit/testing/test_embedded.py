import gc
import os
import threading
from pathlib import Path

import pytest

from barnabas.config.definition import ConfigError
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode, KafkaError

DELAY = "group.initial.rebalance.delay.ms"


def values(broker: EmbeddedBroker, topic: str, **options: int) -> list[bytes | None]:
    return [record.value for record in broker.records(topic, **options)]


def test_produced_records_are_read_back_with_key_headers_and_timestamp(kafka: EmbeddedBroker) -> None:
    delivery = kafka.produce("greetings", "hello", "you", headers=[("lang", b"en")], timestamp_ms=5)
    assert delivery.offset == 0
    [record] = kafka.records("greetings")
    assert (record.value, record.key, record.timestamp_ms) == (b"hello", b"you", 5)
    assert list(record.headers) == [("lang", b"en")]


def test_text_of_keys_values_and_headers_is_encoded(kafka: EmbeddedBroker) -> None:
    kafka.produce("t", "é", "k", headers=[("trace", "1"), ("none", None)])
    [record] = kafka.records("t")
    assert (record.value, record.key) == ("é".encode(), b"k")
    assert list(record.headers) == [("trace", b"1"), ("none", None)]


def test_records_are_ordered_by_partition_and_offset(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t", partitions=2)
    for value, partition in (("a", 1), ("b", 0), ("c", 1)):
        kafka.produce("t", value, partition=partition)
    assert values(kafka, "t") == [b"b", b"a", b"c"]


def test_records_waits_for_the_requested_number(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t")
    writer = threading.Thread(target=lambda: [kafka.produce("t", str(number)) for number in range(3)])
    writer.start()
    found = values(kafka, "t", count=3)
    writer.join()
    assert found == [b"0", b"1", b"2"]


def test_missing_records_are_a_timeout_with_the_number_received(kafka: EmbeddedBroker) -> None:
    kafka.produce("t", "only one")
    with pytest.raises(TimeoutError, match="topic 't' has 1 records after 50 ms, not 2"):
        kafka.records("t", count=2, timeout_ms=50)


def test_topics_are_created_listed_and_deleted(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("a", partitions=3, configs={"retention.ms": "1000"})
    kafka.create_topic("b")
    assert kafka.topics() == {"a": 3, "b": 1}
    kafka.delete_topic("a")
    assert kafka.topics() == {"b": 1}


def test_a_deleted_topic_is_not_recreated_by_producing_to_others(kafka: EmbeddedBroker) -> None:
    for name in ("gone", "kept"):
        kafka.produce(name, "x")
    kafka.delete_topic("gone")
    kafka.produce("new", "x")
    kafka.client.cluster.invalidate()
    kafka.produce("kept", "y")
    assert kafka.topics() == {"kept": 1, "new": 1}
    kafka.produce("gone", "again")
    assert [record.value for record in kafka.records("gone")] == [b"again"]


def test_an_error_of_the_broker_is_raised(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t")
    with pytest.raises(KafkaError) as exists:
        kafka.create_topic("t")
    assert exists.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
    with pytest.raises(KafkaError) as missing:
        kafka.delete_topic("other")
    assert missing.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with pytest.raises(KafkaError) as unread:
        kafka.records("other")
    assert unread.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("kill", [False, True])
def test_a_restart_keeps_port_topics_and_records(kafka: EmbeddedBroker, kill: bool) -> None:
    kafka.produce("t", "before")
    bootstrap = kafka.bootstrap
    kafka.restart(kill=kill)
    assert kafka.bootstrap == bootstrap
    kafka.produce("t", "after")
    assert values(kafka, "t") == [b"before", b"after"]


def test_a_client_that_cannot_be_closed_does_not_keep_the_broker_running(
    kafka: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = kafka.client.close

    def close_and_fail() -> None:
        close()
        raise LookupError("not closed")

    monkeypatch.setattr(kafka.client, "close", close_and_fail)
    with pytest.raises(LookupError, match="not closed"):
        kafka.halt(kill=False)
    assert (kafka.directory / ".kafka_cleanshutdown").exists()
    kafka.serve()
    kafka.produce("t", "after")
    assert values(kafka, "t") == [b"after"]


def test_only_a_restart_without_kill_leaves_a_clean_shutdown_marker(
    kafka: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = kafka.directory / ".kafka_cleanshutdown"
    found: list[bool] = []
    serve = EmbeddedBroker.serve

    def look_and_serve(broker: EmbeddedBroker) -> None:
        found.append(marker.exists())
        serve(broker)

    monkeypatch.setattr(EmbeddedBroker, "serve", look_and_serve)
    kafka.restart(kill=True)
    kafka.restart()
    assert found == [False, True]


def test_settings_reach_the_broker() -> None:
    with EmbeddedBroker({"num.partitions": "7"}) as broker:
        broker.produce("made-for-me", "x")
        assert broker.topics() == {"made-for-me": 7}


@pytest.mark.parametrize(("settings", "expected"), [({}, 0), ({DELAY: "3000"}, 3000)])
def test_the_initial_rebalance_delay_is_0_by_default(settings: dict[str, str], expected: int) -> None:
    with EmbeddedBroker(settings) as kafka:
        assert kafka._server is not None
        assert kafka._server.broker.config.integer(DELAY) == expected


def test_an_invalid_setting_is_reported_and_leaves_nothing() -> None:
    threads = threading.active_count()
    broker = EmbeddedBroker({"num.partitions": "many"})
    with pytest.raises(ConfigError, match=r"'many' for num\.partitions"):
        broker.start()
    assert threading.active_count() == threads
    with pytest.raises(RuntimeError, match="is not running"):
        assert broker.directory


def test_the_directory_is_removed_with_the_broker_even_after_a_failure() -> None:
    broker = EmbeddedBroker()

    def fail() -> None:
        with broker:
            seen.append(broker.directory)
            raise ZeroDivisionError

    seen: list[Path] = []
    with pytest.raises(ZeroDivisionError):
        fail()
    assert not seen[0].exists()


def test_a_broker_that_is_not_running_reports_it() -> None:
    with pytest.raises(RuntimeError, match=r"call start\(\)"):
        EmbeddedBroker().topics()
    with EmbeddedBroker() as broker, pytest.raises(RuntimeError, match=broker.bootstrap):
        broker.start()


def test_stopping_twice_and_restarting_are_harmless() -> None:
    broker = EmbeddedBroker()
    broker.start()
    broker.produce("t", "x")
    broker.stop()
    broker.stop()
    with broker:
        assert broker.topics() == {}


def test_several_brokers_run_side_by_side() -> None:
    with EmbeddedBroker() as one, EmbeddedBroker() as other:
        one.produce("t", "1")
        assert one.topics() == {"t": 1}
        assert other.topics() == {}
        assert one.bootstrap != other.bootstrap


def open_files() -> set[str]:
    descriptors = Path("/proc/self/fd")
    found = set()
    for name in os.listdir(descriptors):
        try:
            found.add(f"{name} {os.readlink(descriptors / name)}")
        except FileNotFoundError:
            continue  # the listing's own
    return found


def one_life() -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic("t", partitions=4)
        broker.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER")
        broker.produce("t", "x")
        broker.records("t")
        broker.restart(kill=True)
        broker.restart()
        broker.delete_topic("t")


@pytest.mark.filterwarnings("error")
def test_neither_threads_nor_files_nor_tasks_are_leaked(capfd: pytest.CaptureFixture[str]) -> None:
    one_life()  # files that are opened once, such as /dev/urandom
    gc.collect()
    threads, files = set(threading.enumerate()), open_files()
    for _ in range(3):
        one_life()
    gc.collect()
    assert set(threading.enumerate()) == threads
    assert open_files() - files == set()
    assert "never" not in (errors := capfd.readouterr().err), errors  # coroutines never awaited
    assert "pending" not in errors, errors  # tasks destroyed


def test_an_unknown_setting_is_a_warning_with_the_nearest_one() -> None:
    with (
        pytest.warns(
            UserWarning, match=r"unknown setting of a broker: num\.partition; did you mean num\.part"
        ),
        EmbeddedBroker({"num.partition": "3"}),
    ):
        pass
