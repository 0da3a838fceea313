"""A representative, quick selection of Apache Kafka's own integration tests. `make kafka-tests` runs all."""

from pathlib import Path

import pytest
from interop.kafka_tests.classify import classify, rules
from interop.kafka_tests.harness import Harness, broker_classes, build
from interop.kafka_tests.results import Result

CLIENTS = "org.apache.kafka.clients"
TOOLS = "org.apache.kafka.tools"
CLASSES = (
    "kafka.server.OffsetDeleteRequestTest",
    "kafka.server.WriteTxnMarkersRequestTest",
    f"{CLIENTS}.admin.AdminFenceProducersTest",
    f"{CLIENTS}.consumer.PlaintextConsumerCloseTest",
    f"{TOOLS}.UserScramCredentialsCommandTest",
    f"{TOOLS}.DeleteRecordsCommandTest",
    "kafka.server.DelegationTokenRequestsTest",
)


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Harness:
    build()
    return Harness("barnabas", tmp_path_factory.mktemp("results"))


def named(result: Result) -> str:
    return f"{result.key} {result.name}: {result.message[:500]}"


@pytest.mark.parametrize("class_name", CLASSES)
def test_a_class_of_kafkas_tests_fails_only_as_listed(harness: Harness, class_name: str) -> None:
    known = rules()
    run = harness.run(class_name)
    outcomes = [(each, classify(each, known).outcome) for each in run.results.values()]
    assert [named(each) for each, outcome in outcomes if outcome == "failed"] == []
    assert run.complete
    assert "passed" in {outcome for _, outcome in outcomes}


def test_a_test_can_get_as_many_brokers_as_it_requests(tmp_path: Path) -> None:
    """Kafka's test compares the log ends of both replicas."""
    build()
    [result] = (
        Harness("barnabas", tmp_path, several=True).run("kafka.server.ReplicaFetchTest").results.values()
    )
    assert (result.status, result.brokers, result.several) == ("SUCCESSFUL", 2, True), named(result)


def test_the_test_jars_have_classes_of_all_three_kinds() -> None:
    build()
    found = broker_classes()
    assert {
        "kafka.server.FetchRequestTest",
        f"{TOOLS}.AclCommandTest",
        "org.apache.kafka.server.KRaftClusterTest",
    } <= set(found)
