"""The source's options, and errors in them."""

from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.reading.option_values import OptionError
from barnabas.reading.options import (
    Assign,
    Edge,
    SpecificOffsets,
    Subscribe,
    SubscribePattern,
    Time,
    Times,
    Transport,
)
from barnabas.wire.isolation import Isolation
from pyspark_barnabas.source.options import TASK_BYTES, batch_options, connection_options, stream_options

SERVERS = {"kafka.bootstrap.servers": "127.0.0.1:9092"}
TOPIC = {**SERVERS, "subscribe": "orders"}
TP = TopicPartition("orders", 0)


def test_a_batch_reads_from_the_earliest_to_the_latest_offset() -> None:
    options = batch_options(TOPIC)
    assert (options.starting, options.ending) == (Edge.EARLIEST, Edge.LATEST)


def test_a_stream_starts_at_the_latest_offset() -> None:
    assert stream_options(TOPIC).starting is Edge.LATEST


def test_defaults_are_the_connectors() -> None:
    options = stream_options(TOPIC)
    assert options.fail_on_data_loss
    assert not options.include_headers
    assert options.isolation is Isolation.READ_UNCOMMITTED
    assert options.max_trigger_delay_ms == 15 * 60_000
    assert options.min_partitions is None
    assert options.transport is Transport.FETCH
    assert options.task_bytes == TASK_BYTES
    assert options.check_crcs


def test_names_are_case_insensitive() -> None:
    options = batch_options(
        {"KAFKA.Bootstrap.Servers": "a:1", "SUBSCRIBE": "orders", "includeHEADERS": "true"}
    )
    assert options.connection.bootstrap == "a:1"
    assert options.include_headers


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"subscribe": " orders , clicks,orders"}, Subscribe(("orders", "clicks"))),
        ({"subscribePattern": "orders-.*"}, SubscribePattern("orders-.*")),
        ({"assign": '{"orders": [0]}'}, Assign(frozenset({TP}))),
    ],
)
def test_the_topics_are_selected_in_one_of_three_ways(given: dict[str, str], expected: Any) -> None:
    assert batch_options({**SERVERS, **given}).selection == expected


@pytest.mark.parametrize("given", [{}, {"subscribe": "orders", "assign": '{"orders": [0]}'}])
def test_exactly_one_selection_is_required(given: dict[str, str]) -> None:
    with pytest.raises(OptionError, match="exactly one of the options subscribe, subscribePattern, assign"):
        batch_options({**SERVERS, **given})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"startingOffsets": "Earliest"}, Edge.EARLIEST),
        ({"startingOffsets": '{"orders": {"0": -2}}'}, SpecificOffsets({TP: -2})),
        ({"startingTimestamp": "1700000000000"}, Time(1_700_000_000_000)),
        ({"startingOffsetsByTimestamp": '{"orders": {"0": 17}}'}, Times({TP: 17})),
    ],
)
def test_a_start_is_earliest_latest_an_offset_or_a_timestamp(given: dict[str, str], expected: Any) -> None:
    assert batch_options({**TOPIC, **given}).starting == expected


def test_one_timestamp_precedes_timestamps_and_those_precede_offsets() -> None:
    given = {"endingOffsets": "latest", "endingOffsetsByTimestamp": '{"orders": {"0": 17}}'}
    assert batch_options({**TOPIC, **given}).ending == Times({TP: 17})
    assert batch_options({**TOPIC, **given, "endingTimestamp": "18"}).ending == Time(18)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"startingOffsets": "latest"}, "startingOffsets.*batch"),
        ({"startingOffsets": '{"orders": {"0": -1}}'}, "startingOffsets.*batch"),
        ({"endingOffsets": "earliest"}, "endingOffsets.*batch"),
        ({"endingOffsets": '{"orders": {"0": -2}}'}, "endingOffsets.*batch"),
        ({"startingOffsets": "yesterday"}, "startingOffsets.*yesterday.*earliest, latest or JSON"),
        ({"startingTimestamp": "noon"}, "startingTimestamp.*noon"),
        ({"startingOffsetsByTimestampStrategy": "guess"}, "guess.*error or latest"),
        ({"minPartitions": "0"}, "minPartitions"),
        ({"transport": "pigeon"}, "pigeon.*fetch or files"),
        ({"transport": "files"}, "logDirs"),
        ({"kafka.isolation.level": "serializable"}, "kafka.isolation.level.*read_committed"),
        ({"kafka.auto.offset.reset": "earliest"}, "kafka.auto.offset.reset.*startingOffsets"),
        ({"kafka.key.deserializer": "x"}, "kafka.key.deserializer"),
        ({"kafka.value.deserializer": "x"}, "kafka.value.deserializer"),
        ({"kafka.enable.auto.commit": "true"}, "kafka.enable.auto.commit.*checkpoint"),
        ({"kafka.interceptor.classes": "x"}, "kafka.interceptor.classes"),
        ({"kafka.security.protocol": "TLS"}, "TLS.*SASL_PLAINTEXT"),
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers.*host:port"),
        ({"subscribe": " , "}, "subscribe.*topics"),
        ({"kafkaConsumer.pollTimeoutMs": "soon"}, "kafkaConsumer.pollTimeoutMs"),
    ],
)
def test_an_invalid_option_is_rejected_by_name(given: dict[str, str], named: str) -> None:
    with pytest.raises(OptionError, match=named):
        batch_options({**TOPIC, **given})


@pytest.mark.parametrize("pattern", ["", "("])
def test_a_pattern_must_be_a_regex(pattern: str) -> None:
    with pytest.raises(OptionError, match=r"subscribePattern.*regular expression"):
        batch_options({**SERVERS, "subscribePattern": pattern})


@pytest.mark.parametrize("name", ["endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(OptionError, match=f"{name}.*no end"):
        stream_options({**TOPIC, name: "latest"})


def test_trigger_limits_are_ignored_in_a_batch() -> None:
    assert batch_options({**TOPIC, "maxOffsetsPerTrigger": "5"}).ignored == ("maxOffsetsPerTrigger",)


def test_the_minimum_of_a_trigger_is_at_most_the_maximum() -> None:
    with pytest.raises(OptionError, match=r"minOffsetsPerTrigger.*maxOffsetsPerTrigger, 4"):
        stream_options({**TOPIC, "minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"})


def test_start_and_end_name_the_same_partitions_in_order() -> None:
    start = {"startingOffsets": '{"orders": {"0": 5}}'}
    with pytest.raises(OptionError, match="orders-1"):
        batch_options({**TOPIC, **start, "endingOffsets": '{"orders": {"0": 9, "1": 9}}'})
    with pytest.raises(OptionError, match="orders-0 would end at 4, before its start at 5"):
        batch_options({**TOPIC, **start, "endingOffsets": '{"orders": {"0": 4}}'})
    assert batch_options({**TOPIC, **start, "endingOffsets": '{"orders": {"0": -1}}'})


def test_the_login_is_in_kafkas_properties() -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="secret";'
    given = {
        **TOPIC,
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": jaas,
        "kafka.client.id": "report",
    }
    connection = batch_options(given).connection
    assert connection.login is not None
    assert (connection.login.user, connection.client_id) == ("a", "report")
    assert "secret" not in repr(connection)
    assert connection_options(given) == connection


def test_an_invalid_login_is_rejected_without_its_password() -> None:
    given = {
        **TOPIC,
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": 'x required password="secret";',
    }
    with pytest.raises(OptionError, match=r"sasl\.jaas\.config") as caught:
        batch_options(given)
    assert "secret" not in str(caught.value)


def test_files_need_no_broker() -> None:
    options = batch_options({"subscribe": "orders", "transport": "files", "logDirs": "/data/a, /data/b"})
    assert options.transport is Transport.FILES
    assert options.log_dirs == ("/data/a", "/data/b")
    assert options.connection.bootstrap == ""


def test_crcs_are_checked_by_default_and_in_either_spelling_of_the_option() -> None:
    assert not batch_options({**TOPIC, "kafka.check.crcs": "false"}).check_crcs
    assert not batch_options({**TOPIC, "checkCrcs": "false"}).check_crcs
