import asyncio
from pathlib import Path

import pytest

from barnabas.base.clock import ManualClock
from barnabas.metadata.acls import acl_key, decide_create_acls, decide_remove_acls, matching
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.image import MetadataImage
from barnabas.security import authorizer as module
from barnabas.security.acl_use import AclUseRecord
from barnabas.security.authorizer import StandardAuthorizer
from barnabas.wire.acls import AclBinding, AclDecision, AclFilter, AclOperation, ResourceType
from support.acls import ALICE, AUTHORIZED, ROOT, allow, deny
from support.images import replayed
from support.loop import on_loop
from support.nodes import running_node

READ, TOPIC = AclOperation.READ, ResourceType.TOPIC


def authorizer_of(*bindings: AclBinding, allow_if_no_acl: bool = False) -> StandardAuthorizer:
    table = {acl_key(binding): binding for binding in bindings}
    return StandardAuthorizer(
        table, [ROOT], allow_if_no_acl=allow_if_no_acl, clock=ManualClock(9), use=AclUseRecord.empty(0)
    )


def test_a_super_user_is_allowed_despite_denials() -> None:
    authorizer = authorizer_of(deny(AclOperation.ALL, name="*", principal="User:*"))
    assert authorizer.known(ROOT, "h", READ, TOPIC, "t")
    assert authorizer.known_any(ROOT, "h", READ, TOPIC)
    assert not authorizer.known(ALICE, "h", READ, TOPIC, "t")


def test_without_acls_on_a_resource_the_configuration_decides() -> None:
    for allowed in (False, True):
        authorizer = authorizer_of(allow(READ, name="other"), allow_if_no_acl=allowed)
        assert authorizer.known(ALICE, "h", READ, TOPIC, "t") is allowed
        assert authorizer.known_any("User:bob", "h", READ, TOPIC) is allowed
        assert authorizer.known("User:bob", "h", READ, TOPIC, "other") is False


def test_acls_on_one_resource_type_do_not_affect_another() -> None:
    authorizer = authorizer_of(allow(READ, ResourceType.GROUP))
    assert authorizer.known(ALICE, "h", READ, ResourceType.GROUP, "t")
    assert not authorizer.known(ALICE, "h", READ, TOPIC, "t")


def test_decisions_follow_the_clusters_state() -> None:
    authorizer = authorizer_of()
    image = MetadataImage()
    assert not authorizer.known(ALICE, "h", READ, TOPIC, "t")
    for decide, expected in (
        (lambda table: decide_create_acls(table, [allow(READ)]), True),
        (lambda table: decide_create_acls(table, [deny(READ)]), False),
        (lambda table: decide_remove_acls(table, list(table.values())), False),
    ):
        decision = decide(image.acls)
        after = replayed(image, decision)
        version = authorizer.version
        asyncio.run(authorizer.apply(image, after, ChangedKeys(decision.changes)))
        assert authorizer.version == version + 1
        assert authorizer.known(ALICE, "h", READ, TOPIC, "t") is expected
        image = after
    assert authorizer.statistics() == {
        "acls_count": 0,
        "acls_used_count": 0,
        "decisions_count": 1,
        "recorded_decisions_count": 1,
    }


def test_unrelated_changes_keep_cached_decisions() -> None:
    authorizer = authorizer_of(allow(READ))
    assert authorizer.known(ALICE, "h", READ, TOPIC, "t")
    asyncio.run(authorizer.apply(MetadataImage(), MetadataImage(), ChangedKeys(())))
    assert authorizer.version == 0
    assert authorizer.statistics() == {
        "acls_count": 1,
        "acls_used_count": 1,
        "decisions_count": 1,
        "recorded_decisions_count": 1,
    }


def test_cached_decisions_are_bounded(monkeypatch) -> None:
    monkeypatch.setattr(module, "DECISIONS_COUNT_MAX", 10)
    authorizer = authorizer_of(allow(READ, name="t1"))
    for number in range(25):
        assert authorizer.known(ALICE, "h", READ, TOPIC, f"t{number}") is (number == 1)
    assert authorizer.statistics()["decisions_count"] <= 10


def test_decisions_on_long_names_use_bounded_memory() -> None:
    authorizer = authorizer_of(allow(READ, name="x" * 1000))
    for length in range(900, 1100):
        assert authorizer.known(ALICE, "h", READ, TOPIC, "x" * length) is (length == 1000)
    assert authorizer.statistics()["decisions_count"] == 0


@pytest.mark.parametrize(
    ("more", "warns"),
    [({}, True), ({"super_users": ROOT}, False), ({"allow_everyone_if_no_acl_found": "true"}, False)],
)
def test_an_authorizer_that_denies_everything_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: dict[str, str], warns: bool
) -> None:
    @on_loop
    async def scenario() -> None:
        settings = {"authorizer_class_name": AUTHORIZED["authorizer_class_name"], **more}
        async with running_node(tmp_path, **settings):
            assert ("all requests will be denied" in capsys.readouterr().err) is warns

    scenario()


def test_acls_are_used_from_their_first_decision_until_they_are_removed() -> None:
    reading, writing = allow(READ, host="0:0:0:0:0:0:0:1"), allow(AclOperation.WRITE)
    forbidding = deny(AclOperation.DELETE, name="*")
    authorizer = authorizer_of()
    image = MetadataImage()
    for decide, expected in (
        (
            lambda table: decide_create_acls(table, [reading, writing, forbidding]),
            [(reading, None, 9), (writing, None, 9), (forbidding, None, 9)],
        ),
        (
            lambda table: decide_remove_acls(table, matching(table, AclFilter(operation=READ))),
            [(writing, None, 9), (forbidding, 9, 9)],
        ),
        (
            lambda table: decide_create_acls(table, [reading]),
            [(writing, None, 9), (forbidding, 9, 9), (reading, None, 9)],
        ),
    ):
        decision = decide(image.acls)
        after = replayed(image, decision)
        asyncio.run(authorizer.apply(image, after, ChangedKeys(decision.changes)))
        assert authorizer.used() == expected
        if not image.acls:
            assert not authorizer.known(ALICE, "::2", READ, TOPIC, "t")
            assert not authorizer.known("User:bob", "::1", READ, TOPIC, "t")
            assert authorizer.used() == expected
            assert authorizer.known(ALICE, "::1", READ, TOPIC, "t")
            assert not authorizer.known(ALICE, "::1", AclOperation.DELETE, TOPIC, "t")
            assert set(authorizer.used()) == {(reading, 9, 9), (writing, None, 9), (forbidding, 9, 9)}
            assert authorizer.statistics()["acls_used_count"] == 2
        image = after


def test_the_record_of_use_goes_on_after_a_restart_and_counts_cached_decisions_again() -> None:
    reading, writing = allow(READ), allow(AclOperation.WRITE)
    table = {acl_key(acl): acl for acl in (reading, writing)}
    clock = ManualClock(100)

    def started(use: AclUseRecord) -> StandardAuthorizer:
        return StandardAuthorizer(table, [], allow_if_no_acl=False, clock=clock, use=use)

    first = started(AclUseRecord.empty(50))
    assert first.known(ALICE, "h", READ, TOPIC, "t")
    clock.advance(10)
    assert first.known(ALICE, "h", READ, TOPIC, "t")
    assert first.take_use_record().last_used_ms == {acl_key(reading): 100}
    assert first.known(ALICE, "h", READ, TOPIC, "t")
    version = first.version
    kept = first.take_use_record()
    assert first.version != version  # responses that are cached by it are made, and count, again
    assert kept.last_used_ms == {acl_key(reading): 110}
    second = started(kept)
    assert (second.since_ms, second.used()) == (50, [(reading, 110, None)])
    assert second.known(ALICE, "h", AclOperation.WRITE, TOPIC, "t")
    assert second.used() == [(reading, 110, None), (writing, 110, None)]


def test_creations_and_decisions_are_known_after_a_restart() -> None:
    reading, clock = allow(READ), ManualClock(100)
    first = StandardAuthorizer({}, [], allow_if_no_acl=False, clock=clock, use=AclUseRecord.empty(50))
    decision = decide_create_acls(MetadataImage().acls, [reading])
    after = replayed(MetadataImage(), decision)
    asyncio.run(first.apply(MetadataImage(), after, ChangedKeys(decision.changes)))
    clock.advance(10)
    assert not first.known("User:bob", "h", READ, TOPIC, "t")
    assert first.known(ALICE, "h", READ, TOPIC, "t")
    kept = first.take_use_record()
    clock.advance(10)
    second = StandardAuthorizer(after.acls, [], allow_if_no_acl=False, clock=clock, use=kept)
    assert second.used() == [(reading, 110, 100)]
    record = second.decision_record()
    assert record.since_ms == 50
    assert [(each.principal, each.is_allowed) for each in record.decisions] == [
        (ALICE, True),
        ("User:bob", False),
    ]


def test_decisions_are_recorded_once_with_their_last_use() -> None:
    clock = ManualClock(100)
    table = {acl_key(acl): acl for acl in (allow(READ),)}
    authorizer = StandardAuthorizer(
        table, [ROOT], allow_if_no_acl=True, clock=clock, use=AclUseRecord.empty(0)
    )
    asked = ALICE, "h", READ, TOPIC, "t"
    refused = AclDecision("User:bob", "h", READ, TOPIC, "t", is_allowed=False, last_used_ms=100)
    assert authorizer.known(*asked)
    assert not authorizer.known(*refused[:5])
    clock.advance(10)
    assert authorizer.known(*asked)
    record = authorizer.decision_record()
    assert set(record.decisions) == {AclDecision(*asked, is_allowed=True, last_used_ms=100), refused}
    assert record[:1] + record[2:] == (0, 0, frozenset({ROOT}), True)
    authorizer.take_use_record()
    assert authorizer.known(*asked)
    again = AclDecision(*asked, is_allowed=True, last_used_ms=110)
    assert set(authorizer.decision_record().decisions) == {again, refused}


def test_what_is_only_reported_is_neither_recorded_nor_a_use_of_acls() -> None:
    authorizer = authorizer_of(allow(READ))
    assert authorizer.reported(ALICE, "h", READ, TOPIC, "t")
    assert not authorizer.reported(ALICE, "h", AclOperation.WRITE, TOPIC, "t")
    assert list(authorizer.decision_record().decisions) == []
    assert authorizer.used() == []
    assert authorizer.known(ALICE, "h", READ, TOPIC, "t")
    assert len(list(authorizer.decision_record().decisions)) == 1
    assert authorizer.used() == [(allow(READ), 9, None)]


def test_a_decision_on_any_resource_is_recorded_without_a_name() -> None:
    authorizer = authorizer_of(allow(AclOperation.WRITE))
    assert authorizer.known_any(ALICE, "h", AclOperation.WRITE, TOPIC)
    [recorded] = authorizer.decision_record().decisions
    assert recorded == AclDecision(
        ALICE, "h", AclOperation.WRITE, TOPIC, None, is_allowed=True, last_used_ms=9
    )
