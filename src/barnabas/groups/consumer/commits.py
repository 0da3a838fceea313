"""Checks of offset commits by members of consumer groups."""

from barnabas.groups.consumer.member import ConsumerGroupMember
from barnabas.groups.group import CommitCheck
from barnabas.wire.errors import ErrorCode, KafkaError

#: The first version of OffsetCommit with STALE_MEMBER_EPOCH.
FIRST_VERSION_WITH_MEMBER_EPOCH = 9


def check_member_commit(
    member: ConsumerGroupMember, epoch: int, *, is_transactional: bool, version: int
) -> CommitCheck | None:
    """Check the epoch of a commit. An older one is accepted for partitions that the member has owned since.

    :raises KafkaError: STALE_MEMBER_EPOCH, or for a classic member ILLEGAL_GENERATION; UNSUPPORTED_VERSION.
    """
    if not (is_transactional or member.uses_classic_protocol or version >= FIRST_VERSION_WITH_MEMBER_EPOCH):
        message = f"Members of consumer groups commit by OffsetCommit 9 or later; this is version {version}."
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
    if epoch == member.member_epoch:
        return None
    if epoch > member.member_epoch:
        raise _stale(member, f"Epoch {epoch} is newer than the member's, which is {member.member_epoch}.")
    return lambda topic_id, index: _check_partition(member, epoch, topic_id, index)


def check_member_epoch(member: ConsumerGroupMember, epoch: int) -> None:
    """Check that an epoch is the member's.

    :raises KafkaError: STALE_MEMBER_EPOCH, or for a classic member ILLEGAL_GENERATION.
    """
    if epoch != member.member_epoch:
        raise _stale(member, f"Epoch {epoch} is not the member's, which is {member.member_epoch}.")


def _check_partition(member: ConsumerGroupMember, epoch: int, topic_id: bytes, index: int) -> None:
    assigned_epoch = member.assignment_epoch(topic_id, index)
    if assigned_epoch is None:
        raise _stale(member, f"The member has no partition {index} of this topic.")
    if epoch < assigned_epoch:
        message = f"Epoch {epoch} is older than {assigned_epoch}, in which partition {index} was assigned."
        raise _stale(member, message)


def _stale(member: ConsumerGroupMember, message: str) -> KafkaError:
    code = ErrorCode.ILLEGAL_GENERATION if member.uses_classic_protocol else ErrorCode.STALE_MEMBER_EPOCH
    return KafkaError(code, message)
