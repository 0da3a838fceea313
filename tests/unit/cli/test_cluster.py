"""Tables and JSON of `barnabas cluster status`."""

import pytest

from barnabas.base.store_member import StoreMember
from barnabas.cli import cluster as command
from barnabas.cli.cluster import PARTITIONS_MAX, broker_row, load_row, status_json
from barnabas.client.admin.extensions.cluster_status import (
    BrokerLiveness,
    BrokerStatus,
    ClusterStatus,
    MetadataState,
    UnhealthyPartition,
)
from barnabas.client.core.address import BrokerAddress

LIVE = BrokerStatus(
    node_id=1,
    address=BrokerAddress("h", 9092),
    rack="a",
    state=BrokerLiveness.LIVE,
    reason="",
    software_version="1.0",
    epoch=4,
    has_session=True,
    since_ms=0,
    revision=7,
    metadata_hash="ab",
    metadata_state=MetadataState.SAME,
    leaders_count=2,
    replicas_count=3,
    log_bytes=1000,
    in_bytes_per_second=10,
    out_bytes_per_second=20,
)
SILENT = LIVE._replace(
    node_id=2,
    rack=None,
    state=BrokerLiveness.UNREACHABLE,
    reason="refused",
    software_version=None,
    epoch=None,
    has_session=None,
    since_ms=None,
    revision=None,
    metadata_hash=None,
    metadata_state=MetadataState.UNKNOWN,
    log_bytes=None,
    in_bytes_per_second=None,
    out_bytes_per_second=None,
)
LIVE_JSON = {
    "broker": 1,
    "host": "h",
    "port": 9092,
    "rack": "a",
    "controller": True,
    "version": "1.0",
    "state": "live",
    "unreachable_reason": None,
    "session": True,
    "epoch": 4,
    "since_ms": 0,
    "metadata_revision": 7,
    "metadata_hash": "ab",
    "metadata_state": "same",
    "leaders": 2,
    "replicas": 3,
    "log_bytes": 1000,
    "in_bytes_per_second": 10,
    "out_bytes_per_second": 20,
}
SILENT_JSON = dict.fromkeys(LIVE_JSON) | {
    "broker": 2,
    "host": "h",
    "port": 9092,
    "controller": False,
    "state": "unreachable",
    "unreachable_reason": "refused",
    "metadata_state": "unknown",
    "leaders": 2,
    "replicas": 3,
}
UNHEALTHY = UnhealthyPartition("t", 3, None, (1, 2), (2,), 2)


SERVES = StoreMember("http://h1:2379", "a", "leader", "3.5.1", 1024, "")
FAILS = StoreMember("http://h2:2379", "b", None, "", None, "refused")


def status(*unhealthy: UnhealthyPartition) -> ClusterStatus:
    return ClusterStatus("id", 1, "etcd", (SERVES, FAILS), 7, (LIVE, SILENT), 9, unhealthy)


def test_a_row_shows_a_question_mark_for_what_is_not_known() -> None:
    since = "1970-01-01T00:00:00.000+00:00"
    assert broker_row(LIVE) == (1, LIVE.address, "a", "1.0", "live", "open", 4, since)
    assert broker_row(SILENT) == (2, SILENT.address, "", "?", "unreachable", "?", "?", "?")
    assert load_row(LIVE) == (1, 7, "same", 2, 3, 1000, 10, 20)
    assert load_row(SILENT) == (2, "?", "unknown", 2, 3, "?", "?", "?")


def test_a_long_list_of_partitions_is_cut_in_tables_and_complete_in_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    many = [UNHEALTHY._replace(partition=number) for number in range(PARTITIONS_MAX + 5)]
    command._print_status(status(*many))
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("t-") for line in lines) == PARTITIONS_MAX
    assert "and 5 more: see 'barnabas topics partitions --unhealthy'" in lines
    unhealthy = status_json(status(*many))["unhealthy_partitions"]
    assert isinstance(unhealthy, list)
    assert len(unhealthy) == PARTITIONS_MAX + 5


def test_the_members_of_the_store_have_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    command._print_status(status())
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("http://")]
    assert rows == [
        ["http://h1:2379", "a", "leader", "3.5.1", "1024"],
        ["http://h2:2379", "b", "unavailable", "?", "?"],
    ]


def test_json_has_all_fields() -> None:
    described = status_json(status(UNHEALTHY))
    assert described.pop("brokers") == [LIVE_JSON, SILENT_JSON]
    assert described == {
        "healthy": False,
        "problems": [
            "broker 2 does not respond: refused",
            "the metadata store at http://h2:2379 is unavailable: refused",
            "1 partition is offline",
            "1 partition is under min.insync.replicas",
            "1 partition is under-replicated",
        ],
        "cluster_id": "id",
        "controller_id": 1,
        "metadata_store": "etcd",
        "metadata_store_members": [SERVES._asdict(), FAILS._asdict()],
        "metadata_revision": 7,
        "partitions": 9,
        "offline_partitions": 1,
        "under_min_isr_partitions": 1,
        "under_replicated_partitions": 1,
        "unhealthy_partitions": [
            {
                "topic": "t",
                "partition": 3,
                "leader": None,
                "replicas": (1, 2),
                "isr": (2,),
                "min_isr": 2,
                "states": ("offline", "under-min-isr", "under-replicated"),
            }
        ],
    }
