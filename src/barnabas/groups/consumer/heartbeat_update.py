"""Updates of a group by a member's request: a new epoch, a new target, reconciliation of the member."""

from collections import Counter

from barnabas.coordinator.result import CoordinatorResult
from barnabas.groups.consumer.assignors.group_spec import Partitions
from barnabas.groups.consumer.client_info import Caller
from barnabas.groups.consumer.group import ConsumerGroup, subscribed_topic_ids
from barnabas.groups.consumer.member import ConsumerGroupMember, MemberState
from barnabas.groups.consumer.reconciliation import ReconciliationInput, reconcile
from barnabas.groups.consumer.records import (
    append_assignment_epoch,
    append_current,
    append_group_epoch,
    append_member,
    append_no_partition_metadata,
    append_regex,
    append_target,
)
from barnabas.groups.consumer.regex import REFRESH_INTERVAL_MS_MIN, ResolvedRegex, check_regex, matching
from barnabas.groups.consumer.settings import Settings
from barnabas.groups.consumer.subscriptions import group_spec, metadata_hash
from barnabas.groups.consumer.timers import cancel_rebalance_timer, set_rebalance_timer
from barnabas.groups.rebalance_history import NO_MEMBER, AssignedTopics, EventKind
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import KafkaError

#: How long subscribed topics count as unchanged without notification.
_METADATA_FRESH_MS = (1 << 31) - 1


class Progress:
    """A member's request in progress. Only the result is changed: records change the group."""

    def __init__(
        self,
        result: CoordinatorResult,
        group: ConsumerGroup,
        settings: Settings,
        before: ConsumerGroupMember,
        member: ConsumerGroupMember,
    ) -> None:
        """:param before: The member before the request.
        :param member: The member as its request updates it.
        """
        self.result = result
        self.group = group
        self.settings = settings
        self.before = before
        self.member = member
        self.image: MetadataImage = settings.context.image()
        self._history = settings.context.rebalances
        self.regexes = dict(group.regexes)
        self.epoch = group.epoch
        self.assignment_epoch = group.assignment_epoch
        self.target: Partitions = group.target_of(member)
        self.has_subscription_changed = False

    # Subscription

    def subscribe(self, caller: Caller, topics_revision: int) -> None:
        """Update the subscription; the group's epoch increases if the subscribed topics change.

        :param topics_revision: When a topic was last created.
        :raises KafkaError: INVALID_REGULAR_EXPRESSION.
        """
        has_new_regex = self.member.subscribed_regex != self.before.subscribed_regex
        is_unknown = self.member.subscribed_regex not in ("", *self.regexes)
        if is_unknown:
            check_regex(self.member.subscribed_regex)
        if self.member != self.before:
            append_member(self.result, self.group.group_id, self.member)
        self.has_subscription_changed = (
            has_new_regex or self.member.subscribed_topics != self.before.subscribed_topics
        )
        is_refresh_due = self._is_refresh_due(topics_revision)
        has_new_matches = (has_new_regex or is_unknown or is_refresh_due) and self._resolve(
            caller, refreshes=is_refresh_due
        )
        if self.has_subscription_changed:
            self._update_epoch(self._subscription_event(), is_due=True)
        elif has_new_matches:
            self._update_epoch(EventKind.TOPICS_CHANGED, is_due=True)
        elif self.group.has_metadata_expired(self.result.now_ms):
            self._update_epoch(EventKind.TOPICS_CHANGED, is_due=False)

    def _subscription_event(self) -> EventKind:
        if self.member.member_id in self.group.members:
            return EventKind.SUBSCRIPTION_CHANGED
        return EventKind.REPLACED if self.group.static_member(self.member.instance_id) else EventKind.JOINED

    def _resolve(self, caller: Caller, *, refreshes: bool) -> bool:
        """Remove unused expressions and match those that are due; return whether matches changed."""
        members = self.group.members_with(self.member).values()
        patterns = {member.subscribed_regex for member in members} - {""}
        for pattern in sorted(self.regexes.keys() - patterns):
            del self.regexes[pattern]
            append_regex(self.result, self.group.group_id, pattern, None)
        due = patterns if refreshes else patterns - self.regexes.keys()
        changes = [self._match(pattern, caller) for pattern in sorted(due)]
        return any(changes)

    def _is_refresh_due(self, topics_revision: int) -> bool:
        if not self.regexes:
            return False
        refreshed_ms = min(resolved.timestamp_ms for resolved in self.regexes.values())
        version = min(resolved.version for resolved in self.regexes.values())
        age_ms = self.result.now_ms - refreshed_ms
        if age_ms < 0:  # the clock of the former coordinator was ahead
            return True
        has_new_topics = version < topics_revision and age_ms >= REFRESH_INTERVAL_MS_MIN
        return has_new_topics or age_ms >= self.settings.regex_refresh_interval_ms()

    def _match(self, pattern: str, caller: Caller) -> bool:
        """Match an expression with all topics that the caller may describe; return whether the matches changed.

        The caller's expression has been checked. An expression that another broker accepted and this one cannot read
        matches nothing.
        """
        try:
            names = matching(pattern, self.image.topics)
        except KafkaError:
            names = frozenset()
        topics = frozenset(caller.visible_topics(names))
        before = self.regexes.get(pattern)
        self.regexes[pattern] = ResolvedRegex(topics, self.image.revision, self.result.now_ms)
        append_regex(self.result, self.group.group_id, pattern, self.regexes[pattern])
        return topics != (frozenset() if before is None else before.topics)

    def _update_epoch(self, cause: EventKind, *, is_due: bool) -> None:
        """Increase the group's epoch, if necessary or if subscribed topics have changed."""
        members = self.group.members_with(self.member).values()
        new_hash = metadata_hash(members, self.regexes, self.image)
        if is_due or new_hash != self.group.metadata_hash:
            self.epoch += 1
            append_group_epoch(self.result, self.group.group_id, self.epoch, new_hash)
            self.settings.context.counts.consumer_rebalances_count += 1
            member = NO_MEMBER if cause is EventKind.TOPICS_CHANGED else self.member.identity
            self._history.record(
                self.group.group_id, self.group.group_type, self.result.now_ms, cause, member
            )
            self._history.set_epoch(self.group.group_id, self.epoch)
        self.group.metadata_fresh = (self.result.now_ms + _METADATA_FRESH_MS, self.epoch)
        if self.group.has_partition_metadata:
            append_no_partition_metadata(self.result, self.group.group_id)

    # Target

    def assign(self) -> None:
        """Compute the target of the group's epoch, unless the last target is too recent.

        A target may be of the future, if the clock of the broker that computed it was ahead.
        """
        interval_ms = self.settings.assignment_interval_ms(self.group.group_id)
        assigned_ms = self.group.assignment_timestamp_ms
        if self.group.assignment_epoch >= self.epoch:
            return
        if assigned_ms and 0 <= self.result.now_ms - assigned_ms < interval_ms:
            return
        members = self.group.members_with(self.member)
        assign = self.settings.assignors()[preferred_assignor(members, self.settings)]
        targets = assign(group_spec(self.group, members, self.regexes, self.image))
        for member_id, partitions in targets.items():
            if partitions != self.group.target.get(member_id):
                append_target(self.result, self.group.group_id, member_id, partitions)
        append_assignment_epoch(self.result, self.group.group_id, self.epoch, self.result.now_ms)
        self.assignment_epoch = self.epoch
        self.target = targets[self.member.member_id]
        assignments = (
            (member.identity, self._by_name(targets[member_id])) for member_id, member in members.items()
        )
        self._history.set_assignments(self.group.group_id, assignments, len(members))

    def _by_name(self, partitions: Partitions) -> AssignedTopics:
        names = self.image.topic_names
        return {
            names[topic_id]: tuple(sorted(indexes))
            for topic_id, indexes in partitions.items()
            if topic_id in names
        }

    # Reconciliation

    def reconcile(self, owned: Partitions | None) -> None:
        """Reconcile the member with its target; `owned` is what it owns by its request.

        :raises KafkaError: FENCED_MEMBER_EPOCH.
        """
        if not self.has_subscription_changed and self.member.is_reconciled_to(self.assignment_epoch):
            return
        topic_ids = subscribed_topic_ids(self.member, self.regexes, self.image)
        is_owned = self.group.is_owned
        aim = ReconciliationInput(
            self.assignment_epoch, self.target, topic_ids, is_owned, owned, self.has_subscription_changed
        )
        reconciled = reconcile(self.member, aim)
        if reconciled is self.member:
            return
        append_current(self.result, self.group.group_id, reconciled)
        self.member = reconciled
        if self._history.is_rebalancing(self.group.group_id) and self._is_group_reconciled():
            self._history.complete(self.group.group_id, self.result.now_ms)
        if reconciled.uses_classic_protocol:
            return
        if reconciled.state is MemberState.UNREVOKED_PARTITIONS:
            set_rebalance_timer(self.result, self.group, reconciled)
        else:
            cancel_rebalance_timer(self.result, self.group, reconciled.member_id)

    def _is_group_reconciled(self) -> bool:
        """Return whether all members own what the group's epoch assigns to them, once this request is stored."""
        members = self.group.members_with(self.member).values()
        return self.assignment_epoch == self.epoch and all(
            member.is_reconciled_to(self.epoch) for member in members
        )


def preferred_assignor(members: dict[str, ConsumerGroupMember], settings: Settings) -> str:
    """Return the assignor that most members name, or the first configured one."""
    known = settings.assignors()
    votes = Counter(dict.fromkeys(known, 0))
    votes.update(name for member in members.values() if (name := member.server_assignor) in known and name)
    return max(votes, key=votes.__getitem__)
