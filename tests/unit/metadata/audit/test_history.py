"""Historical values in the store, and their expiry."""

import random
from dataclasses import replace
from typing import Any

import pytest

from barnabas.base.clock import ManualClock
from barnabas.metadata.acls import ACLS, acl_key
from barnabas.metadata.audit.auditor import Auditor
from barnabas.metadata.audit.former_value import FORMER_VALUES, FormerValue
from barnabas.metadata.audit.history import (
    KEPT_BYTES_MAX,
    decide_expire_history,
    decide_keep_history,
    history_start,
    states_of,
    value_at,
)
from barnabas.metadata.configs import BROKER_CONFIGS, CLIENT_METRICS_CONFIGS, GROUP_CONFIGS, TOPIC_CONFIGS
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.quotas import QUOTAS, ClientQuota, entity_key, entity_of
from barnabas.metadata.record_type import Table
from barnabas.metadata.scram import SCRAM_CREDENTIALS, ScramCredential
from barnabas.metadata.store import StoreChange
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from barnabas.wire.scram import ScramMechanism
from support.images import replayed

NOW_MS = 1_700_000_000_000
KEY = TOPIC_CONFIGS.key("orders")


class World:
    """An image and an auditor with its own clock."""

    def __init__(self, *, keeps: bool = True) -> None:
        self.clock = ManualClock(NOW_MS)
        self.auditor = Auditor(self.clock, random.Random(1))
        self.image = MetadataImage()
        if keeps:
            self.commit(decide_keep_history(self.image, enabled=True))

    def commit(self, decision: Decision[Any]) -> int:
        self.image = replayed(self.image, self.auditor.with_audit_record(self.image, decision, None))
        return self.image.revision

    def retention(self, value: str | None) -> int:
        change = (
            StoreChange(KEY, None) if value is None else TOPIC_CONFIGS.put("orders", {"retention.ms": value})
        )
        return self.commit(Decision(None, (change,)))

    def at(self, revision: int) -> str | None:
        found = value_at(self.image, KEY, revision)
        return None if found is None else found["retention.ms"]


def test_every_revision_can_be_read_across_changes_and_removals() -> None:
    world = World()
    known = {world.image.revision: None}
    for value in ("1", "2", None, "3", None, "4", "5"):
        known[world.retention(value)] = value
    assert {revision: world.at(revision) for revision in known} == known


def test_a_row_created_later_did_not_exist_before() -> None:
    world = World()
    before = world.image.revision
    world.retention("1")
    world.retention("2")
    assert world.at(before) is None


def test_without_a_history_nothing_is_stored() -> None:
    world = World(keeps=False)
    world.retention("1")
    world.retention("2")
    assert not world.image.former_values
    assert history_start(world.image) is None


def test_a_disabled_history_is_deleted_and_starts_again() -> None:
    world = World()
    world.retention("1")
    world.retention("2")
    world.commit(decide_keep_history(world.image, enabled=False))
    assert not world.image.former_values
    world.retention("3")
    start = world.commit(decide_keep_history(world.image, enabled=True))
    assert history_start(world.image) == start
    assert world.at(start) == "3"


def test_a_long_history_is_removed_in_parts_oldest_first() -> None:
    world = World()
    for value in "12345":
        world.retention(value)
    revision = world.image.revision
    while not (decision := decide_keep_history(world.image, enabled=False, at_once_max=2)).response:
        assert len(decision.changes) == 3
        world.commit(decision)
        assert world.at(revision) == "5"
    world.commit(decision)
    assert not world.image.former_values
    assert history_start(world.image) is None


def test_continuing_a_history_changes_nothing() -> None:
    world = World()
    assert not decide_keep_history(world.image, enabled=True).changes
    assert not decide_keep_history(World(keeps=False).image, enabled=False).changes


def test_the_history_starts_after_expired_values() -> None:
    world = World()
    world.retention("1")
    world.retention("2")
    world.clock.advance(1000)
    third = world.retention("3")
    world.clock.advance(1000)
    fourth = world.retention("4")
    world.commit(decide_expire_history(world.image, NOW_MS + 1500))
    assert history_start(world.image) == third
    assert (world.at(third), world.at(fourth)) == ("3", "4")
    assert not decide_expire_history(world.image, NOW_MS + 1500).changes


def test_beyond_the_limit_the_oldest_values_expire() -> None:
    world = World()
    revisions = [world.retention(str(number)) for number in range(10)]
    world.commit(decide_expire_history(world.image, None, count_max=4))
    assert len(world.image.former_values) == 4
    assert history_start(world.image) == revisions[5]
    assert [world.at(revision) for revision in revisions[5:]] == ["5", "6", "7", "8", "9"]


def test_beyond_the_limit_of_bytes_the_oldest_values_expire() -> None:
    world = World()
    revisions = [world.retention(str(number) * 32_000) for number in range(10)]
    world.commit(decide_expire_history(world.image, None, bytes_max=100_000))
    assert len(world.image.former_values) == 3
    assert history_start(world.image) == revisions[6]
    assert world.at(revisions[6]) == "6" * 32_000
    assert not decide_expire_history(world.image, None, bytes_max=100_000).changes


def test_large_values_that_alternate_expire_although_they_are_few() -> None:
    value = {"k": "x" * 32_000}
    former = [FormerValue(KEY, value, since, NOW_MS) for since in range(1, 4_001)]
    rows, revisions = {each.row: each for each in former}, {each.row: each.since + 1 for each in former}
    start = Table({"self": 1}, {"self": 1})
    image = MetadataImage(4_001, {"former_values": Table(rows, revisions), "history_start": start})
    left_count = len(former) - decide_expire_history(image, None).response
    assert left_count * 32_000 < KEPT_BYTES_MAX < (left_count + 1) * 32_100


@pytest.mark.parametrize("ended_before_ms", [None, NOW_MS])
def test_recent_values_are_kept(ended_before_ms: int | None) -> None:
    world = World()
    world.retention("1")
    world.retention("2")
    assert not decide_expire_history(world.image, ended_before_ms).changes


def test_a_resource_has_only_its_own_values() -> None:
    world = World()
    first = world.retention("1")
    world.commit(Decision(None, (TOPIC_CONFIGS.put("clicks", {"retention.ms": "9"}),)))
    world.retention(None)
    assert states_of(world.image, "topic/orders", first) == {KEY: {"retention.ms": "1"}}
    assert states_of(world.image, "topic/nope", first) == {}


def acl(resource_type: ResourceType, name: str, pattern: PatternType = PatternType.LITERAL) -> StoreChange:
    fields = ("User:alice", "*", AclOperation.READ, AclPermission.ALLOW)
    binding = AclBinding(resource_type, name, pattern, *fields)
    return ACLS.put(acl_key(binding), binding)


def quota(**parts: str | None) -> StoreChange:
    entity = entity_of({name.replace("_", "-"): value for name, value in parts.items()})
    return QUOTAS.put(entity_key(entity), ClientQuota(entity, {"request_percentage": 1.0}))


CREDENTIALS = {
    ScramMechanism.SCRAM_SHA_256: ScramCredential.of_password(ScramMechanism.SCRAM_SHA_256, "p", b"s")
}
OF_RESOURCES = [
    ("topic/orders", [TOPIC_CONFIGS.put("orders", {"a": "1"}), acl(ResourceType.TOPIC, "orders")]),
    ("topic/orders-eu", [acl(ResourceType.TOPIC, "orders-eu")]),
    ("topic/ord*", [acl(ResourceType.TOPIC, "ord", PatternType.PREFIXED)]),
    ("topic/*", [acl(ResourceType.TOPIC, "*"), acl(ResourceType.TOPIC, "", PatternType.PREFIXED)]),
    ('topic/\u00fc"[', [acl(ResourceType.TOPIC, '\u00fc"[')]),
    ("group/orders", [GROUP_CONFIGS.put("orders", {"a": "1"}), acl(ResourceType.GROUP, "orders")]),
    ("transactional-id/orders", [acl(ResourceType.TRANSACTIONAL_ID, "orders")]),
    ("broker/", [BROKER_CONFIGS.put("", {"a": "1"})]),
    ("broker/1", [BROKER_CONFIGS.put("1", {"a": "1"})]),
    ("client-metrics/m", [CLIENT_METRICS_CONFIGS.put("m", {"a": "1"})]),
    ("user/alice", [SCRAM_CREDENTIALS.put("alice", CREDENTIALS), acl(ResourceType.USER, "alice")]),
    ("quota/user=alice", [quota(user="alice")]),
    ("quota/client-id,user=a%2Cb%3D", [quota(user="a,b=", client_id=None)]),
]


@pytest.mark.parametrize(("resource", "own"), OF_RESOURCES)
@pytest.mark.parametrize("is_removed", [False, True])
def test_a_resource_has_all_its_records_whether_they_exist_or_were_removed(
    resource: str, own: list[StoreChange], *, is_removed: bool
) -> None:
    world = World()
    every = [change for _, changes in OF_RESOURCES for change in changes]
    revision = world.commit(Decision(None, tuple(every)))
    if is_removed:
        world.commit(Decision(None, tuple(StoreChange(change.key, None) for change in every)))
    states = states_of(world.image, resource, revision)
    assert set(states) == {change.key for change in own}
    assert None not in states.values()


def test_values_of_other_resources_are_not_decoded() -> None:
    world = World()
    first = world.retention("1")
    clicks = acl(ResourceType.TOPIC, "clicks")
    world.commit(Decision(None, (clicks,)))
    world.commit(Decision(None, (StoreChange(clicks.key, None), TOPIC_CONFIGS.put("orders", {}))))
    former = world.image.former_values
    undecodable = {row: replace(value, plain=[]) for row, value in former.items() if value.key == clicks.key}
    assert len(undecodable) == 1
    table = Table({**former.rows, **undecodable}, former.revisions)
    image = replace(world.image, tables={**world.image.tables, FORMER_VALUES.name: table})
    assert states_of(image, "topic/orders", first) == {KEY: {"retention.ms": "1"}}


def test_historical_values_are_never_printed() -> None:
    world = World()
    for password in ("first", "second"):
        credential = ScramCredential.of_password(ScramMechanism.SCRAM_SHA_256, password, b"salt" * 4)
        change = SCRAM_CREDENTIALS.put("alice", {ScramMechanism.SCRAM_SHA_256: credential})
        world.commit(Decision(None, (change,)))
    [former] = world.image.former_values.values()
    assert former.plain["SCRAM-SHA-256"][0] not in repr(world.image)
