"""New, changed and resolved drift."""

import asyncio
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from barnabas.base.clock import ManualClock
from barnabas.declared.diff import ResourceChange, diff_states
from barnabas.declared.drift import watched
from barnabas.declared.state import PRUNABLE, ClusterState, TopicState
from support.declared_states import states


def leaves(state: ClusterState) -> list[tuple[str, Any, str]]:
    """Return every key of a state except users': section, name, and key, which is empty for an ACL."""
    found: list[tuple[str, Any, str]] = [("acls", acl, "") for acl in state.acls]
    for section in ("topics", "groups", "brokers", "client_metrics", "quotas"):
        for name, resource in getattr(state, section).items():
            values = getattr(resource, "configs", resource)
            found += [(section, name, key) for key in values]
    return found


def without(state: ClusterState, section: str, name: Any, key: str) -> ClusterState:
    """Return the state without one key."""
    if section == "acls":
        return replace(state, acls=state.acls - {name})
    resources = dict(getattr(state, section))
    resource = resources[name]
    values = {each: value for each, value in getattr(resource, "configs", resource).items() if each != key}
    resources[name] = replace(resource, configs=values) if hasattr(resource, "configs") else values
    return replace(state, **{section: resources})


@given(states(frozenset(PRUNABLE)), st.data())
def test_every_single_removed_key_is_found(declared: ClusterState, data: st.DataObject) -> None:
    keys = leaves(declared)
    assume(keys)
    section, name, key = data.draw(st.sampled_from(sorted(keys, key=str)))
    [change] = diff_states(declared, without(declared, section, name, key))
    assert (change.section.value, change.name) == (section, name)
    assert key in ("", change.key)


@given(states(frozenset(PRUNABLE)), st.data())
def test_every_single_added_key_is_found(live: ClusterState, data: st.DataObject) -> None:
    keys = leaves(live)
    assume(keys)
    section, name, key = data.draw(st.sampled_from(sorted(keys, key=str)))
    [change] = diff_states(without(live, section, name, key), live)
    assert (change.section.value, change.name, change.after) == (section, name, None)
    assert {each.name for each in fields(ClusterState)} >= {section}


class Stop(Exception):
    pass


def test_drift_is_reported_when_it_appears_changes_and_disappears() -> None:
    clock = ManualClock()
    declared = ClusterState(topics={"t": TopicState(None, None, {"retention.ms": "5"})})

    def found(value: str) -> Sequence[ResourceChange]:
        return diff_states(declared, ClusterState(topics={"t": TopicState(1, 1, {"retention.ms": value})}))

    rounds = [found("5"), found("6"), found("6"), found("7"), found("5"), []]

    async def find() -> Sequence[ResourceChange]:
        return rounds.pop(0)

    async def pause() -> None:
        clock.advance(1000)
        if not rounds:
            raise Stop

    async def work() -> list[tuple[int, str, str, str]]:
        start_ms = clock.wall_ms()
        events = []
        try:
            async for drift in watched(find, clock, pause):
                line = drift.as_json()
                events.append((line["time"] - start_ms, line["event"], line["declared"], line["found"]))
        except Stop:
            return events
        raise AssertionError

    assert asyncio.run(work()) == [
        (1000, "drift", "5", "6"),
        (3000, "drift", "5", "7"),
        (4000, "resolved", "5", "5"),
    ]
