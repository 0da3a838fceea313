"""The quorum of the metadata: the controller is its only voter, because the metadata store takes the place of a quorum.

Every broker returns the same. The response is that of an Apache Kafka node that is both broker and controller:
revisions of the store are the offsets of its metadata log.
"""

from dataclasses import dataclass

from barnabas.base.ids import ZERO_UUID, uuid_to_text
from barnabas.metadata.brokers import Endpoint
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError

#: The only voter always leads: there is no other epoch.
LEADER_EPOCH = 1

#: Why voters can be neither added, removed nor updated.
_ONLY_VOTER = "The metadata store takes the place of a quorum, whose only voter is the controller."


@dataclass(frozen=True, slots=True)
class Voter:
    """A voter, identified by its id and the id of its metadata directory (KIP-853)."""

    voter_id: int
    directory_id: bytes

    def __str__(self) -> str:
        return f"{self.voter_id}-{uuid_to_text(self.directory_id)}"


@dataclass(frozen=True, slots=True)
class Quorum:
    cluster_id: str
    voter: Voter
    endpoints: tuple[Endpoint, ...]
    high_watermark: int


def quorum_of(image: MetadataImage, controller_id: int) -> Quorum:
    broker = image.brokers.get(str(controller_id))
    directory_id = broker.log_dirs[0] if broker is not None and broker.log_dirs else ZERO_UUID
    return Quorum(
        cluster_id=image.cluster["self"].cluster_id,
        voter=Voter(controller_id, directory_id),
        endpoints=() if broker is None else broker.endpoints,
        high_watermark=image.revision,
    )


def refuse_add(quorum: Quorum, cluster_id: str | None, voter: Voter, listeners_count: int) -> KafkaError:
    """Return the error for AddRaftVoter: an error of the request, else that voters cannot be added."""
    return (
        _cluster_error(quorum, cluster_id)
        or _voter_error(voter)
        or _listeners_error(listeners_count)
        or _duplicate_error(quorum, voter)
        or KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Voter {voter} cannot be added. {_ONLY_VOTER}")
    )


def refuse_remove(quorum: Quorum, cluster_id: str | None, voter: Voter) -> KafkaError:
    """Return the error for RemoveRaftVoter. For the last voter it is that of Apache Kafka: the voter does not exist."""
    last = KafkaError(ErrorCode.VOTER_NOT_FOUND, f"Voter {voter} cannot be removed. {_ONLY_VOTER}")
    return (
        _cluster_error(quorum, cluster_id)
        or _voter_error(voter)
        or _unknown_voter_error(quorum, voter)
        or last
    )


def refuse_update(
    quorum: Quorum, cluster_id: str | None, leader_epoch: int, voter: Voter, listeners_count: int
) -> KafkaError:
    """Return the error for UpdateRaftVoter."""
    return (
        _cluster_error(quorum, cluster_id)
        or _epoch_error(leader_epoch)
        or _voter_error(voter)
        or _listeners_error(listeners_count)
        or _unknown_voter_error(quorum, voter)
        or KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Voter {voter} cannot be updated. {_ONLY_VOTER}")
    )


def _cluster_error(quorum: Quorum, cluster_id: str | None) -> KafkaError | None:
    if cluster_id is None or cluster_id == quorum.cluster_id:
        return None
    message = f"The request is for cluster '{cluster_id}', this is cluster '{quorum.cluster_id}'."
    return KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, message)


def _voter_error(voter: Voter) -> KafkaError | None:
    if voter.voter_id >= 0 and voter.directory_id != ZERO_UUID:
        return None
    message = f"Invalid voter {voter}: expected an id of 0 or more, and the id of its metadata directory."
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _epoch_error(leader_epoch: int) -> KafkaError | None:
    if leader_epoch == LEADER_EPOCH:
        return None
    older = leader_epoch < LEADER_EPOCH
    code = ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH
    return KafkaError(code, f"The request is for leader epoch {leader_epoch}, this is epoch {LEADER_EPOCH}.")


def _listeners_error(listeners_count: int) -> KafkaError | None:
    if listeners_count:
        return None
    return KafkaError(
        ErrorCode.INVALID_REQUEST, "The request has no listeners of the voter: at least one is required."
    )


def _duplicate_error(quorum: Quorum, voter: Voter) -> KafkaError | None:
    if voter.voter_id != quorum.voter.voter_id:
        return None
    message = f"A voter with id {voter.voter_id} already exists: {quorum.voter}."
    return KafkaError(ErrorCode.DUPLICATE_VOTER, message)


def _unknown_voter_error(quorum: Quorum, voter: Voter) -> KafkaError | None:
    if voter == quorum.voter:
        return None
    return KafkaError(
        ErrorCode.VOTER_NOT_FOUND, f"Voter {voter} not found: the only voter is {quorum.voter}."
    )
