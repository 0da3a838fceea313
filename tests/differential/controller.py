"""Apache Kafka's controller with brokers that exist only as registrations, so that partitions can be moved among
them.

They register and report in-sync replicas as brokers do, by APIs that only controllers serve and that kio encodes.
"""

import io
import struct
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kio.schema.alter_partition.v3 import request as alter_partition
from kio.schema.alter_partition.v3.response import AlterPartitionResponse
from kio.schema.broker_heartbeat.v1.request import BrokerHeartbeatRequest
from kio.schema.broker_heartbeat.v1.response import BrokerHeartbeatResponse
from kio.schema.broker_registration.v4 import request as broker_registration
from kio.schema.broker_registration.v4.response import BrokerRegistrationResponse
from kio.serial import entity_reader, entity_writer

from barnabas.metadata.topics import PartitionRegistration
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from barnabas.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from barnabas.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.schema import Message
from differential.sides import Side
from interop import reference

#: The brokers that are only registered; broker 1 is real.
BROKERS = (2, 3, 4, 5)

#: Brokers are not fenced for missing heartbeats, and replicas do not leave the ISR for missing fetches.
SETTINGS = {"broker.session.timeout.ms": "600000", "replica.lag.time.max.ms": "600000"}

_HEADER = struct.Struct(">hhihB")
_VISIBLE_TIMEOUT_S = 30.0


class Controller:
    """One Apache Kafka, used as a client and as its brokers."""

    def __init__(self, bootstrap: str) -> None:
        self.side = Side("kafka", bootstrap)
        quorum = self.ask(
            DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])]),
            DescribeQuorumResponse,
            2,
        )
        [listener] = quorum.nodes[0].listeners
        self._controller = Side("controller", f"{listener.host}:{listener.port}")
        self._cluster_id = self.ask(MetadataRequest(topics=[]), MetadataResponse, 12).cluster_id
        self._epochs = {broker_id: self._register(broker_id) for broker_id in BROKERS}

    def close(self) -> None:
        self.side.disconnect()
        self._controller.disconnect()

    def ask(self, request: Message, response: type[Message], version: int) -> Any:
        return self.side.exchange(request, response, version).body

    def _register(self, broker_id: int) -> int:
        """Register a broker that supports the cluster's features, and unfence it; return its epoch."""
        versions = self.ask(ApiVersionsRequest("differential", "1"), ApiVersionsResponse, 4)
        request = broker_registration.BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=self._cluster_id,
            incarnation_id=uuid.UUID(int=broker_id + 1000),
            listeners=(
                broker_registration.Listener(name="PLAINTEXT", host="127.0.0.1", port=9, security_protocol=0),
            ),
            features=tuple(
                broker_registration.Feature(
                    name=each.name,
                    min_supported_version=each.min_version,
                    max_supported_version=each.max_version,
                )
                for each in versions.supported_features
            ),
            rack=None,
            log_dirs=(uuid.UUID(int=broker_id + 2000),),
        )
        registered = self._as_broker(request, BrokerRegistrationResponse)
        assert registered.error_code == 0, registered
        self.fence(broker_id, int(registered.broker_epoch), is_fenced=False)
        return int(registered.broker_epoch)

    def fence(self, broker_id: int, epoch: int | None = None, *, is_fenced: bool) -> None:
        beat = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=self._epochs[broker_id] if epoch is None else epoch,
            current_metadata_offset=2**40,
            want_fence=is_fenced,
            want_shut_down=False,
        )
        deadline_s = time.monotonic() + _VISIBLE_TIMEOUT_S
        while self._as_broker(beat, BrokerHeartbeatResponse).is_fenced != is_fenced:
            assert time.monotonic() < deadline_s, f"broker {broker_id} does not become fenced={is_fenced}"

    def report(self, topic_id: bytes, state: PartitionRegistration, isr: list[int]) -> str:
        """Report the ISR as the leader of partition 0; return the name of the response's error."""
        members = tuple(
            alter_partition.BrokerState(broker_id=each, broker_epoch=self._epochs[each]) for each in isr
        )
        partition = alter_partition.PartitionData(
            partition_index=0,
            leader_epoch=state.leader_epoch,
            new_isr_with_epochs=members,
            partition_epoch=state.partition_epoch,
        )
        request = alter_partition.AlterPartitionRequest(
            broker_id=state.leader,
            broker_epoch=self._epochs[state.leader],
            topics=(alter_partition.TopicData(topic_id=uuid.UUID(bytes=topic_id), partitions=(partition,)),),
        )
        response = self._as_broker(request, AlterPartitionResponse)
        assert response.error_code == 0, response
        code = str(response.topics[0].partitions[0].error_code.name).upper()
        return (
            "NONE" if code == "NEW_LEADER_ELECTED" else code
        )  # the report counts, but its sender is no longer the leader

    def _as_broker(self, request: Any, response: Any) -> Any:
        buffer = io.BytesIO()
        entity_writer(type(request))(buffer, request)
        kind = type(request)
        header = _HEADER.pack(kind.__api_key__, kind.__version__, 7, -1, 0)
        body = header + buffer.getvalue()
        self._controller.send(struct.pack(">i", len(body)) + body)
        answer = self._controller.receive()
        value, _ = entity_reader(response)(answer, 5)
        return value

    def await_state(self, name: str, expected: PartitionRegistration) -> PartitionRegistration:
        """Return the state of a topic's partition 0 once the broker shows `expected`, or the last state at the
        timeout.
        """
        deadline_s = time.monotonic() + _VISIBLE_TIMEOUT_S
        while (found := self._state(name, expected.partition_epoch)) != expected:
            if time.monotonic() > deadline_s:
                return found
            time.sleep(0.002)
        return found

    def _state(self, name: str, partition_epoch: int) -> PartitionRegistration:
        """Return the state as far as clients see it; the partition epoch is taken as given."""
        request = DescribeTopicPartitionsRequest([TopicRequest(name)])
        [topic] = self.ask(request, DescribeTopicPartitionsResponse, 0).topics
        if topic.error_code:
            return PartitionRegistration(-1, -1, ())
        [partition] = topic.partitions
        listed = self.ask(ListPartitionReassignmentsRequest(), ListPartitionReassignmentsResponse, 0)
        moves = {each.name: each.partitions[0] for each in listed.topics}
        move = moves.get(name)
        # Kafka keeps replicas that a reassignment has removed, although it elects only replicas.
        eligible = tuple(sorted({*(partition.eligible_leader_replicas or ())} & {*partition.replica_nodes}))
        return PartitionRegistration(
            partition.leader_id,
            partition.leader_epoch,
            tuple(partition.isr_nodes),
            partition_epoch,
            tuple(partition.replica_nodes),
            tuple(move.adding_replicas) if move else (),
            tuple(move.removing_replicas) if move else (),
            eligible,
            tuple(partition.last_known_elr or ()),
        )


@contextmanager
def controller(home: Path) -> Iterator[Controller]:
    """Run a controller with BROKERS registered."""
    kafka = reference.start(home, SETTINGS)
    try:
        made = Controller(kafka.bootstrap)
        yield made
        made.close()
    finally:
        kafka.stop()
