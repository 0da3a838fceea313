"""Reconciliation of a member with its target (KIP-848).

A member first revokes partitions, and confirms that with what it owns. Then it moves to the epoch of the target, and
gets the partitions that no other member owns, immediately or as others revoke them. So a partition never has two
owners, and members wait only for the owners of their partitions.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from barnabas.groups.consumer.assignors.group_spec import Partitions
from barnabas.groups.consumer.member import Assigned, ConsumerGroupMember, MemberState
from barnabas.wire.errors import ErrorCode, KafkaError

_S = MemberState
#: The transitions of one reconciliation.
TRANSITIONS: dict[MemberState, frozenset[MemberState]] = {
    _S.STABLE: frozenset({_S.STABLE, _S.UNREVOKED_PARTITIONS, _S.UNRELEASED_PARTITIONS}),
    _S.UNREVOKED_PARTITIONS: frozenset({_S.STABLE, _S.UNREVOKED_PARTITIONS, _S.UNRELEASED_PARTITIONS}),
    _S.UNRELEASED_PARTITIONS: frozenset({_S.STABLE, _S.UNREVOKED_PARTITIONS, _S.UNRELEASED_PARTITIONS}),
    _S.UNKNOWN: frozenset({_S.STABLE, _S.UNRELEASED_PARTITIONS}),  # it has revoked everything
}
assert TRANSITIONS.keys() == set(MemberState)

#: Returns whether a member owns a partition: topic id, index.
IsOwned: TypeAlias = Callable[[bytes, int], bool]


@dataclass(frozen=True, slots=True)
class ReconciliationInput:
    """The target of a member, and its epoch."""

    epoch: int
    target: Partitions
    topic_ids: frozenset[bytes]  #: the member's present subscription
    is_owned: IsOwned
    #: the owned partitions in the request; None if it does not contain them
    owned: Partitions | None = None
    has_subscription_changed: bool = False


def reconcile(member: ConsumerGroupMember, inputs: ReconciliationInput) -> ConsumerGroupMember:
    """Return the member after one step of reconciliation; the same one if there is nothing to do.

    :raises KafkaError: FENCED_MEMBER_EPOCH for a member in a state of a newer broker that still owns partitions.
    """
    moved = _STEPS[member.state](member, inputs)
    assert moved is member or moved.state in TRANSITIONS[member.state], (member, moved)
    return moved


def _from_stable(member: ConsumerGroupMember, inputs: ReconciliationInput) -> ConsumerGroupMember:
    if member.member_epoch != inputs.epoch:
        return _advance(member, inputs, member.member_epoch)
    return _drop_unsubscribed(member, inputs) if inputs.has_subscription_changed else member


def _from_unrevoked(member: ConsumerGroupMember, inputs: ReconciliationInput) -> ConsumerGroupMember:
    if _may_still_own(inputs, member.revoking):
        return _drop_unsubscribed(member, inputs) if inputs.has_subscription_changed else member
    return _advance(member, inputs, member.member_epoch)


def _from_unreleased(member: ConsumerGroupMember, inputs: ReconciliationInput) -> ConsumerGroupMember:
    return _advance(member, inputs, member.member_epoch)


def _from_unknown(member: ConsumerGroupMember, inputs: ReconciliationInput) -> ConsumerGroupMember:
    if inputs.owned is None or inputs.owned:
        message = "The member is in an unknown state: it must revoke all its partitions and rejoin."
        raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, message)
    return _advance(member, inputs, inputs.epoch)


_STEPS: dict[MemberState, Callable[[ConsumerGroupMember, ReconciliationInput], ConsumerGroupMember]] = {
    _S.STABLE: _from_stable,
    _S.UNREVOKED_PARTITIONS: _from_unrevoked,
    _S.UNRELEASED_PARTITIONS: _from_unreleased,
    _S.UNKNOWN: _from_unknown,
}


def _may_still_own(inputs: ReconciliationInput, revoked: Assigned) -> bool:
    """Return whether the member may still own some of these partitions; True if the request does not say."""
    if inputs.owned is None:
        return True
    return any(
        not indexes.isdisjoint(revoked.get(topic_id, ())) for topic_id, indexes in inputs.owned.items()
    )


def _drop_unsubscribed(member: ConsumerGroupMember, inputs: ReconciliationInput) -> ConsumerGroupMember:
    """Remove topics to which the member does not subscribe any more; the next epoch has a new target."""
    dropped = {topic_id: of for topic_id, of in member.assigned.items() if topic_id not in inputs.topic_ids}
    if not dropped:
        return member
    subscribed = {topic_id: of for topic_id, of in member.assigned.items() if topic_id in inputs.topic_ids}
    revoking = {
        topic_id: {**member.revoking.get(topic_id, {}), **dropped.get(topic_id, {})}
        for topic_id in member.revoking.keys() | dropped.keys()
    }
    if _may_still_own(inputs, revoking):
        return member.moved(_S.UNREVOKED_PARTITIONS, member.member_epoch, subscribed, revoking)
    return member.moved(member.state, member.member_epoch, subscribed, member.revoking)


def _advance(member: ConsumerGroupMember, inputs: ReconciliationInput, epoch: int) -> ConsumerGroupMember:
    """Revoke what is not in the target, or else add partitions that no other member owns."""
    retained, revoked, missing = _compare(member.assigned, inputs)
    if revoked and _may_still_own(inputs, revoked):
        return member.moved(_S.UNREVOKED_PARTITIONS, epoch, retained, revoked)
    free = {topic_id: _free(member, inputs, topic_id, indexes) for topic_id, indexes in missing.items()}
    waits = any(len(free[topic_id]) < len(indexes) for topic_id, indexes in missing.items())
    added = {topic_id: dict.fromkeys(indexes, inputs.epoch) for topic_id, indexes in free.items() if indexes}
    assigned = {
        topic_id: {**retained.get(topic_id, {}), **added.get(topic_id, {})}
        for topic_id in retained.keys() | added.keys()
    }
    moved = member.moved(_S.UNRELEASED_PARTITIONS if waits else _S.STABLE, inputs.epoch, assigned, {})
    return member if _is_no_step(member, moved) else moved


def _is_no_step(member: ConsumerGroupMember, moved: ConsumerGroupMember) -> bool:
    """Return whether the member would only wait, or only change its previous epoch."""
    return replace(moved, previous_epoch=member.previous_epoch) == member


def _compare(assigned: Assigned, inputs: ReconciliationInput) -> tuple[Assigned, Assigned, Partitions]:
    """Return the partitions to keep, to revoke and to add."""
    retained: dict[bytes, dict[int, int]] = {}
    revoked: dict[bytes, dict[int, int]] = {}
    missing: dict[bytes, frozenset[int]] = {}
    for topic_id in inputs.target.keys() | assigned.keys():
        target = inputs.target.get(topic_id, frozenset()) if topic_id in inputs.topic_ids else frozenset()
        held = assigned.get(topic_id, {})
        for index, epoch in held.items():
            (retained if index in target else revoked).setdefault(topic_id, {})[index] = epoch
        if more := target - held.keys():
            missing[topic_id] = more
    return retained, revoked, missing


def _free(
    member: ConsumerGroupMember, inputs: ReconciliationInput, topic_id: bytes, indexes: frozenset[int]
) -> frozenset[int]:
    own = member.revoking.get(topic_id, {})
    return frozenset(index for index in indexes if index in own or not inputs.is_owned(topic_id, index))
