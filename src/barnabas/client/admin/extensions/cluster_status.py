"""The status of a cluster, merged from what its brokers report. Brokers other than Barnabas report less."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from barnabas.base.store_member import StoreMember
from barnabas.client.admin.model import ClusterDescription
from barnabas.client.core.address import BrokerAddress
from barnabas.client.core.errors import check
from barnabas.client.core.metadata import Node, PartitionInfo, TopicInfo
from barnabas.wire.barnabas_messages.describe_cluster_status import DescribeClusterStatusResponse


class BrokerLiveness(StrEnum):
    LIVE = "live"
    FENCED = "fenced"
    UNREACHABLE = "unreachable"  #: not fenced, but it does not respond


class MetadataState(StrEnum):
    """How the metadata of a broker compares with those of another one."""

    SAME = "same"
    DIFFERENT = "different"  #: at the same revision
    BEHIND = "behind"  #: so far that the brokers remember no common revision
    UNKNOWN = "unknown"


class Registration(NamedTuple):
    """A broker in the metadata of a broker of Barnabas; `since_ms` is None if it was before that broker's start."""

    epoch: int
    is_fenced: bool
    has_session: bool
    since_ms: int | None


@dataclass(frozen=True)
class BrokerReport:
    """What a broker reports; other brokers than Barnabas know only the size of their logs."""

    software_version: str | None = None
    store: str | None = None
    revision: int | None = None
    hashes: Mapping[int, bytes] = field(default_factory=dict)  #: revision -> hash of the metadata
    registrations: Mapping[int, Registration] = field(default_factory=dict)  #: by broker id
    log_bytes: int | None = None
    in_bytes_per_second: int | None = None
    out_bytes_per_second: int | None = None
    store_members: tuple[StoreMember, ...] = ()


class NoReport(NamedTuple):
    """A broker that did not respond, or not in time."""

    reason: str


class BrokerStatus(NamedTuple):
    """A broker; what is not known is None."""

    node_id: int
    address: BrokerAddress
    rack: str | None
    state: BrokerLiveness
    reason: str  #: why it is unreachable
    software_version: str | None
    epoch: int | None
    has_session: bool | None
    since_ms: int | None  #: since when it is in its epoch, and fenced or not
    revision: int | None
    metadata_hash: str | None
    metadata_state: MetadataState
    leaders_count: int
    replicas_count: int
    log_bytes: int | None
    in_bytes_per_second: int | None
    out_bytes_per_second: int | None


class UnhealthyPartition(NamedTuple):
    """A partition that is offline or lacks in-sync replicas; `min_isr` is None if it is not known."""

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    min_isr: int | None

    @property
    def is_offline(self) -> bool:
        return self.leader is None

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)

    @property
    def is_under_min_isr(self) -> bool:
        """Whether acks=all fails; a partition never needs more replicas than it has."""
        return self.min_isr is not None and len(self.isr) < min(self.min_isr, len(self.replicas))

    @property
    def states(self) -> tuple[str, ...]:
        states = {
            "offline": self.is_offline,
            "under-min-isr": self.is_under_min_isr,
            "under-replicated": self.is_under_replicated,
        }
        return tuple(name for name, applies in states.items() if applies)


@dataclass(frozen=True)
class ClusterStatus:
    """The status of a cluster; partitions are those of the topics that the principal may describe."""

    cluster_id: str
    controller_id: int
    store: str | None
    store_members: tuple[StoreMember, ...]  #: as the broker reaches them whose view this is; empty for a file
    revision: int | None  #: of the metadata, on that broker
    brokers: tuple[BrokerStatus, ...]
    partitions_count: int
    unhealthy: tuple[UnhealthyPartition, ...]

    @property
    def offline_count(self) -> int:
        return sum(partition.is_offline for partition in self.unhealthy)

    @property
    def under_replicated_count(self) -> int:
        return sum(partition.is_under_replicated for partition in self.unhealthy)

    @property
    def under_min_isr_count(self) -> int:
        return sum(partition.is_under_min_isr for partition in self.unhealthy)

    @property
    def problems(self) -> list[str]:
        """What is wrong, a sentence each; empty if the cluster is healthy."""
        problems = [problem for broker in self.brokers for problem in _broker_problems(broker)]
        problems += [
            f"the metadata store at {member.address} is unavailable: {member.reason}"
            for member in self.store_members
            if member.role is None
        ]
        counts = {
            "offline": self.offline_count,
            "under min.insync.replicas": self.under_min_isr_count,
            "under-replicated": self.under_replicated_count,
        }
        problems += [
            f"{count} {'partition is' if count == 1 else 'partitions are'} {state}"
            for state, count in counts.items()
            if count
        ]
        return problems


def _broker_problems(broker: BrokerStatus) -> Iterator[str]:
    name = f"broker {broker.node_id}"
    if broker.state is BrokerLiveness.FENCED:
        yield f"{name} is fenced"
    elif broker.state is BrokerLiveness.UNREACHABLE:
        yield f"{name} does not respond: {broker.reason}"
    if broker.has_session is False and broker.state is not BrokerLiveness.FENCED:
        yield f"{name} has no session, and will be fenced"
    if broker.metadata_state is MetadataState.DIFFERENT:
        yield f"{name} has different metadata"
    elif broker.metadata_state is MetadataState.BEHIND:
        yield f"{name} is behind with the metadata, at revision {broker.revision}"


def parse_status_response(response: DescribeClusterStatusResponse) -> BrokerReport:
    """Return the report of a broker.

    :raises KafkaError: From the broker.
    """
    check(response.error_code, response.error_message)
    return BrokerReport(
        response.software_version,
        response.store,
        response.revision,
        {each.revision: each.hash for each in response.hashes},
        {
            each.broker_id: Registration(each.epoch, each.is_fenced, each.has_session, _known(each.since_ms))
            for each in response.brokers
        },
        _known(response.log_bytes),
        _known(response.in_bytes_per_second),
        _known(response.out_bytes_per_second),
        tuple(
            StoreMember(
                each.address,
                each.name,
                each.role or None,
                each.version,
                _known(each.size_bytes),
                each.reason,
            )
            for each in response.store_members
        ),
    )


def _known(value: int) -> int | None:
    return None if value < 0 else value


def compare_metadata(reference: Mapping[int, bytes], other: Mapping[int, bytes]) -> MetadataState:
    """Compare the hashes of two brokers, by revision, at the latest revision that both remember."""
    if not reference or not other:
        return MetadataState.UNKNOWN
    common = max(reference.keys() & other.keys(), default=None)
    if common is None:
        return MetadataState.BEHIND
    return MetadataState.SAME if reference[common] == other[common] else MetadataState.DIFFERENT


def reference_broker(reports: Mapping[int, BrokerReport | NoReport], controller_id: int) -> int | None:
    """Return the broker with the latest metadata, if possible the controller; None if no broker has responded."""
    responding = {node: report for node, report in reports.items() if isinstance(report, BrokerReport)}
    return max(
        responding,
        key=lambda node: (responding[node].revision or 0, node == controller_id, -node),
        default=None,
    )


def unhealthy_partitions(
    topics: Iterable[TopicInfo], min_isr: Mapping[str, int]
) -> tuple[UnhealthyPartition, ...]:
    """Return the partitions that are offline or under-replicated, the offline ones first.

    :param min_isr: min.insync.replicas of those topics whose value is known.
    """
    unhealthy = [
        UnhealthyPartition(
            topic.name,
            partition.partition_index,
            partition.leader if partition.leader >= 0 else None,
            partition.replicas,
            partition.isr,
            min_isr.get(topic.name),
        )
        for topic in topics
        for partition in topic.partitions
        if is_unhealthy(partition)
    ]
    unhealthy.sort(key=lambda each: (not each.is_offline, not each.is_under_min_isr, each[:2]))
    return tuple(unhealthy)


def is_unhealthy(partition: PartitionInfo) -> bool:
    return partition.leader < 0 or len(partition.isr) < len(partition.replicas)


def merge_status(
    cluster: ClusterDescription,
    topics: Iterable[TopicInfo],
    min_isr: Mapping[str, int],
    reports: Mapping[int, BrokerReport | NoReport],
) -> ClusterStatus:
    """Return the status of a cluster.

    :param cluster: With fenced brokers.
    :param min_isr: min.insync.replicas of those topics whose value is known.
    :param reports: Of the brokers that were asked; fenced ones need not be.
    """
    topics = list(topics)
    reference = reference_broker(reports, cluster.controller_id)
    view = reports[reference] if reference is not None else BrokerReport()
    assert isinstance(view, BrokerReport)
    partitions = [partition for topic in topics for partition in topic.partitions]
    leaders = Counter(partition.leader for partition in partitions)
    replicas = Counter(replica for partition in partitions for replica in partition.replicas)
    brokers = tuple(
        _broker_status(
            node,
            cluster,
            reports,
            view,
            leaders_count=leaders[node.node_id],
            replicas_count=replicas[node.node_id],
        )
        for node in sorted(cluster.nodes)
    )
    return ClusterStatus(
        cluster.cluster_id,
        cluster.controller_id,
        view.store,
        view.store_members,
        view.revision,
        brokers,
        len(partitions),
        unhealthy_partitions(topics, min_isr),
    )


def _broker_status(
    node: Node,
    cluster: ClusterDescription,
    reports: Mapping[int, BrokerReport | NoReport],
    view: BrokerReport,
    *,
    leaders_count: int,
    replicas_count: int,
) -> BrokerStatus:
    found = reports.get(node.node_id, NoReport("it was not asked"))
    reason, report = (found.reason, BrokerReport()) if isinstance(found, NoReport) else ("", found)
    is_fenced = node.node_id in cluster.fenced
    registration = view.registrations.get(node.node_id)
    latest = report.hashes.get(report.revision) if report.revision is not None else None
    return BrokerStatus(
        node_id=node.node_id,
        address=node.address,
        rack=node.rack,
        state=_state(found, is_fenced=is_fenced),
        reason="" if is_fenced else reason,
        software_version=report.software_version,
        epoch=registration.epoch if registration else None,
        has_session=registration.has_session if registration else None,
        since_ms=_since_ms(node.node_id, reports, registration),
        revision=report.revision,
        metadata_hash=latest.hex() if latest is not None else None,
        metadata_state=compare_metadata(view.hashes, report.hashes),
        leaders_count=leaders_count,
        replicas_count=replicas_count,
        log_bytes=report.log_bytes,
        in_bytes_per_second=report.in_bytes_per_second,
        out_bytes_per_second=report.out_bytes_per_second,
    )


def _state(found: BrokerReport | NoReport, *, is_fenced: bool) -> BrokerLiveness:
    if is_fenced:
        return BrokerLiveness.FENCED
    return BrokerLiveness.UNREACHABLE if isinstance(found, NoReport) else BrokerLiveness.LIVE


def _since_ms(
    node_id: int, reports: Mapping[int, BrokerReport | NoReport], registration: Registration | None
) -> int | None:
    """Return when the first broker saw the present registration of a broker; those that started later did not."""
    if registration is None:
        return None
    seen = [
        each.since_ms
        for report in reports.values()
        if isinstance(report, BrokerReport)
        and (each := report.registrations.get(node_id)) is not None
        and each.since_ms is not None
        and (each.epoch, each.is_fenced) == (registration.epoch, registration.is_fenced)
    ]
    return min(seen, default=None)
