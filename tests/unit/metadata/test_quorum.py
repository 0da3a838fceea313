from collections.abc import Callable

import pytest

from barnabas.base.ids import ZERO_UUID, uuid_to_text
from barnabas.metadata.brokers import Endpoint, decide_register
from barnabas.metadata.quorum import Quorum, Voter, quorum_of, refuse_add, refuse_remove, refuse_update
from barnabas.wire.errors import KafkaError
from support.images import broker, cluster, replayed

DIRECTORY, OTHER = b"d" * 16, b"o" * 16
IMAGE = replayed(cluster(2), decide_register(cluster(2).brokers, broker(1, log_dirs=(DIRECTORY, OTHER))))
QUORUM = quorum_of(IMAGE, 1)
OURS = QUORUM.cluster_id
SELF, STRANGER = Voter(1, DIRECTORY), Voter(7, OTHER)


def test_the_quorum_is_this_node_with_its_first_directory() -> None:
    assert (
        Quorum(
            cluster_id=uuid_to_text(bytes(16)),
            voter=SELF,
            endpoints=(Endpoint("PLAINTEXT", "host1", 9092),),
            high_watermark=IMAGE.revision,
        )
        == QUORUM
    )


def test_an_unregistered_node_has_neither_directory_nor_endpoint() -> None:
    quorum = quorum_of(IMAGE, 9)
    assert (quorum.voter, quorum.endpoints) == (Voter(9, ZERO_UUID), ())


def add(cluster_id: str | None, voter: Voter, listeners_count: int = 1) -> KafkaError:
    return refuse_add(QUORUM, cluster_id, voter, listeners_count)


def remove(cluster_id: str | None, voter: Voter) -> KafkaError:
    return refuse_remove(QUORUM, cluster_id, voter)


def update(cluster_id: str | None, voter: Voter, listeners_count: int = 1, epoch: int = 1) -> KafkaError:
    return refuse_update(QUORUM, cluster_id, epoch, voter, listeners_count)


@pytest.mark.parametrize("refuse", [add, remove, update])
@pytest.mark.parametrize(
    ("cluster_id", "voter", "code"),
    [
        ("another", SELF, "INCONSISTENT_CLUSTER_ID"),
        ("", Voter(-1, ZERO_UUID), "INCONSISTENT_CLUSTER_ID"),
        (OURS, Voter(1, ZERO_UUID), "INVALID_REQUEST"),
        (None, Voter(-1, DIRECTORY), "INVALID_REQUEST"),
    ],
)
def test_a_request_must_be_for_this_cluster_and_name_a_voter(
    refuse: Callable[..., KafkaError], cluster_id: str | None, voter: Voter, code: str
) -> None:
    assert refuse(cluster_id, voter).code.name == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (add(OURS, STRANGER, 0), "INVALID_REQUEST"),
        (add(OURS, SELF), "DUPLICATE_VOTER"),
        (add(None, Voter(1, OTHER)), "DUPLICATE_VOTER"),
        (add(OURS, STRANGER), "UNSUPPORTED_VERSION"),
        (remove(OURS, STRANGER), "VOTER_NOT_FOUND"),
        (remove(OURS, Voter(1, OTHER)), "VOTER_NOT_FOUND"),
        (remove(OURS, SELF), "VOTER_NOT_FOUND"),
        (update(OURS, SELF, 0), "INVALID_REQUEST"),
        (update(OURS, STRANGER), "VOTER_NOT_FOUND"),
        (update(OURS, Voter(1, OTHER)), "VOTER_NOT_FOUND"),
        (update(OURS, STRANGER, epoch=0), "FENCED_LEADER_EPOCH"),
        (update(OURS, STRANGER, epoch=2), "UNKNOWN_LEADER_EPOCH"),
        (update("another", STRANGER, epoch=2), "INCONSISTENT_CLUSTER_ID"),
        (update(OURS, SELF), "UNSUPPORTED_VERSION"),
    ],
)
def test_invalid_requests_are_reported_before_the_static_quorum(error: KafkaError, code: str) -> None:
    assert error.code.name == code
    assert error.message


def test_valid_changes_of_voters_are_refused_because_the_controller_is_the_only_voter() -> None:
    for error in (add(OURS, STRANGER), remove(OURS, SELF), update(OURS, SELF)):
        assert "whose only voter is the controller" in error.message
