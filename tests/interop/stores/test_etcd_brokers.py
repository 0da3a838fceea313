"""Three `barnabas serve` processes over three members of etcd."""

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import NewTopic
from barnabas.client.blocking import BlockingClient
from barnabas.client.core.metadata import PartitionInfo, TopicInfo
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.wire.acls import AclFilter, AclOperation
from interop import etcd
from support.acls import AUTHORIZED, allow
from support.process import BrokerProcess, run_serve
from support.waiting import until

TOPIC = "t"
PARTITIONS_COUNT = 3
SETTINGS = ("--set", "broker.session.timeout.ms=2000", "--set", "min.insync.replicas=2")


@pytest.fixture
def members(tmp_path: Path) -> Iterator[list[etcd.Member]]:
    with etcd.running(tmp_path, 3) as running:
        yield running


class Brokers:
    """Brokers 1 to 3, each of which uses another member first."""

    def __init__(self, directory: Path, members: list[etcd.Member]) -> None:
        self._directory = directory
        self._members = members
        self.processes: dict[int, BrokerProcess] = {}
        self._ports: dict[int, int] = {}

    def start(self, node_id: int) -> None:
        at = node_id - 1
        store = etcd.url([*self._members[at:], *self._members[:at]])
        arguments = ["--store", store, "--node-id", str(node_id), "--rack", "abc"[at], *SETTINGS]
        data = self._directory / f"broker-{node_id}"
        process = BrokerProcess(data, *arguments, port=self._ports.get(node_id, 0))
        self.processes[node_id] = process
        self._ports[node_id] = process.port

    @property
    def addresses(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self._ports.values())


@pytest.fixture
def brokers(tmp_path: Path, members: list[etcd.Member]) -> Iterator[Brokers]:
    brokers = Brokers(tmp_path, members)
    with ExitStack() as stack:
        for node_id in (1, 2, 3):
            brokers.start(node_id)
        stack.callback(lambda: [process.__exit__(None, None, None) for process in brokers.processes.values()])
        yield brokers


@contextmanager
def replicated_topic(brokers: Brokers) -> Iterator[tuple[BlockingClient, Callable[[range], None]]]:
    """Create a topic on all brokers; yield a client, and a function that produces numbers."""
    with BlockingClient(brokers.addresses) as client:
        until(lambda: len(client.admin.describe_cluster().nodes) == 3)
        raise_errors(client.admin.create_topics([NewTopic(TOPIC, PARTITIONS_COUNT, 3)]).values())
        with client.producer() as producer:

            def produce(numbers: range) -> None:
                for number in numbers:
                    producer.send_and_wait(TOPIC, b"%d" % number, partition=number % PARTITIONS_COUNT)

            yield client, produce


def consumed(client: BlockingClient) -> list[int]:
    starts = {TopicPartition(TOPIC, index): 0 for index in range(PARTITIONS_COUNT)}
    with client.consumer(starts, stop_at_end=True) as consumer:
        return sorted(int(record.value or b"") for record in consumer)


def partitions(client: BlockingClient) -> tuple[PartitionInfo, ...]:
    topic = client.admin.describe_topics([TOPIC])[TOPIC]
    assert isinstance(topic, TopicInfo)
    return topic.partitions


def test_a_leader_and_the_member_that_it_uses_are_killed_and_others_continue(
    brokers: Brokers, members: list[etcd.Member]
) -> None:
    with replicated_topic(brokers) as (client, produce):
        produce(range(30))
        killed = partitions(client)[0].leader
        brokers.processes[killed].kill()
        members[killed - 1].kill()
        produce(range(30, 60))
        assert killed not in {partition.leader for partition in partitions(client)}
        assert consumed(client) == list(range(60))
        brokers.start(killed)  # its member is still down: it uses the next one
        until(lambda: all(len(partition.isr) == 3 for partition in partitions(client)))
        members[killed - 1].start()
        produce(range(60, 90))
        assert consumed(client) == list(range(90))
    for process in brokers.processes.values():
        assert process.terminate() == 0


def test_a_broker_that_is_stopped_is_replaced_and_joins_again_when_it_continues(brokers: Brokers) -> None:
    with replicated_topic(brokers) as (client, produce):
        stopped = partitions(client)[0].leader
        brokers.processes[stopped].process.send_signal(signal.SIGSTOP)
        others = ",".join(f"127.0.0.1:{brokers.processes[each].port}" for each in {1, 2, 3} - {stopped})
        with BlockingClient(others) as of_others:
            until(lambda: stopped not in {partition.leader for partition in partitions(of_others)})
        brokers.processes[stopped].process.send_signal(signal.SIGCONT)
        until(lambda: all(len(partition.isr) == 3 for partition in partitions(client)))
        produce(range(30))
        assert consumed(client) == list(range(30))


def test_brokers_serve_while_etcd_is_down_and_change_metadata_when_it_is_back(
    brokers: Brokers, members: list[etcd.Member]
) -> None:
    with replicated_topic(brokers) as (client, produce):
        produce(range(30))
        for member in members:
            member.signal(signal.SIGSTOP)
        produce(range(30, 60))
        assert consumed(client) == list(range(60))
        for member in members:
            member.signal(signal.SIGCONT)
        until(lambda: len(client.admin.describe_cluster().nodes) == 3)
        raise_errors(client.admin.create_topics([NewTopic("later", 1, 3)]).values())


def test_requests_may_change_more_than_etcd_allows_in_one_transaction(tmp_path: Path) -> None:
    names = [f"t{number}" for number in range(300)]
    retention = [AlterConfigOp("retention.ms", OpType.SET, "1000")]
    acls = [allow(AclOperation.READ, name=name) for name in names]
    authorizer = AUTHORIZED["authorizer_class_name"]
    with (
        etcd.running(tmp_path, settings=()) as small,  # 128 operations
        BrokerProcess(
            tmp_path / "broker",
            *("--store", etcd.url(small), "--set", f"authorizer.class.name={authorizer}"),
            *("--set", "super.users=User:ANONYMOUS"),
        ) as broker,
        BlockingClient(f"127.0.0.1:{broker.port}") as client,
    ):
        admin = client.admin
        raise_errors(admin.create_topics([NewTopic(name, 2, 1) for name in names]).values())
        altered = admin.alter_configs({Resource(ResourceKind.TOPIC, name): retention for name in names})
        assert set(altered.values()) == {None}
        assert admin.create_acls(acls) == [None] * len(acls)
        assert admin.delete_acls([AclFilter()]) == [dict.fromkeys(acls)]
        assert set(admin.delete_topics(names).values()) == {None}
        assert not set(names) & set(admin.describe_topics())


def test_a_second_broker_with_the_same_id_is_refused(tmp_path: Path, members: list[etcd.Member]) -> None:
    store = etcd.url(members)
    arguments = ("--store", store, "--node-id", "1", "--set", "broker.session.timeout.ms=2000")
    with BrokerProcess(tmp_path / "one", *arguments):
        ended = run_serve("--data", str(tmp_path / "other"), "--listen", "127.0.0.1:0", *arguments)
        assert ended.returncode == 2
        assert "Broker 1 of this cluster is running already" in ended.stderr


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ("etcd://", "'' is not an endpoint of etcd"),
        ("etcd://127.0.0.1:99999", "'127.0.0.1:99999' is not an endpoint of etcd"),
        ("etcd://127.0.0.1:1", "no endpoint of etcd answers"),
    ],
)
def test_a_store_that_cannot_be_used_is_refused(tmp_path: Path, store: str, message: str) -> None:
    ended = run_serve("--data", str(tmp_path), "--listen", "127.0.0.1:0", "--store", store)
    assert ended.returncode == 2
    assert message in ended.stderr
