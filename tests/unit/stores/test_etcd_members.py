"""What the members of etcd answer when they are asked for their status."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from barnabas.base.store_member import StoreMember
from barnabas.stores import etcd_members
from barnabas.stores.etcd_gateway import Gateway
from barnabas.stores.etcd_members import describe_members
from support.etcd_servers import ServedConnection, server, stay_silent
from support.loop import on_loop

STATUS, LIST = "/v3/maintenance/status", "/v3/cluster/member/list"


def member(answers: dict[str, Any]) -> Callable[[ServedConnection], Awaitable[None]]:
    async def serve(connection: ServedConnection) -> None:
        while True:
            connection.send(answers[(await connection.receive())["path"]])

    return serve


def status(member_id: str, leader: str, **fields: Any) -> dict[str, Any]:
    return {
        "header": {"member_id": member_id},
        "version": "3.4.23",
        "dbSize": "20480",
        "leader": leader,
        **fields,
    }


@on_loop
async def test_members_have_their_roles_and_names() -> None:
    listed = {"members": [{"ID": "1", "name": "a"}, {"ID": "2", "name": "b"}, {"ID": "3", "name": "c"}]}
    first = member({LIST: listed, STATUS: status("1", "2")})
    refused = {"code": 7, "message": "permission denied"}
    second = member({LIST: refused, STATUS: status("2", "2")})
    third = member({LIST: refused, STATUS: status("3", "2", isLearner=True)})
    async with server(first) as (one, _), server(second) as (two, _), server(third) as (three, _):
        gateway = Gateway((one, two, three))
        members = await describe_members(gateway)
        gateway.close()
    assert [each[:5] for each in members] == [
        (str(one), "a", "follower", "3.4.23", 20480),
        (str(two), "b", "leader", "3.4.23", 20480),
        (str(three), "c", "learner", "3.4.23", 20480),
    ]


@on_loop
async def test_an_unavailable_member_has_its_name_from_another_one() -> None:
    async with server(stay_silent) as (gone, _):
        pass
    listed = {"members": [{"ID": "1", "name": "a", "clientURLs": [str(gone)]}, {"ID": "2", "name": "b"}]}
    async with server(member({LIST: listed, STATUS: status("2", "2")})) as (endpoint, _):
        gateway = Gateway((gone, endpoint))
        first, second = await describe_members(gateway)
        gateway.close()
    assert (first.name, first.role, second.name, second.role) == ("a", None, "b", "leader")
    assert "refused" in first.reason


@on_loop
async def test_an_unavailable_member_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(etcd_members, "ANSWER_TIMEOUT_S", 0.2)
    refused = {"code": 7, "message": "permission denied"}
    alone = member({LIST: refused, STATUS: status("2", "0")})
    async with server(alone) as (one, _), server(stay_silent) as (two, _):
        gateway = Gateway((one, two))
        members = await describe_members(gateway)
        gateway.close()
    assert members == [
        StoreMember(str(one), reason="it knows no leader of etcd"),
        StoreMember(str(two), reason="no answer within 0.2 s"),
    ]


@on_loop
async def test_a_member_whose_status_the_user_may_not_see_is_available() -> None:
    refused = {"code": 7, "message": "permission denied"}
    async with server(member({LIST: refused, STATUS: refused})) as (endpoint, _):
        gateway = Gateway((endpoint,))
        members = await describe_members(gateway)
        gateway.close()
    assert members == [StoreMember(str(endpoint), role="unknown")]
