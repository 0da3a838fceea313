"""The members of etcd, for `barnabas cluster status`: which of them answer, and which one leads."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.metadata.store import StoreMember
from barnabas.stores.etcd_gateway import Gateway, Refused
from barnabas.stores.etcd_http import EtcdEndpoint, NoAnswer, NotSent

#: How long one member may take to answer.
ANSWER_TIMEOUT_S = 1.5


async def describe_members(gateway: Gateway) -> list[StoreMember]:
    """Return the member behind each endpoint; it has a name only if etcd lets the user list the members."""
    endpoints = gateway.endpoints
    members = await asyncio.gather(*(_member(gateway, endpoint) for endpoint in endpoints))
    lists = await asyncio.gather(
        *(
            _list(gateway, endpoint)
            for endpoint, member in zip(endpoints, members, strict=True)
            if member.role
        )
    )
    listed = max(lists, key=len, default=())
    return [member._replace(name=_name(member, listed)) for member in members]


async def _list(gateway: Gateway, endpoint: EtcdEndpoint) -> Sequence[Mapping[str, Any]]:
    """Return the members that an endpoint lists; none if it does not answer, or refuses."""
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            response = await gateway.call_at(endpoint, "/v3/cluster/member/list", {})
    except (Refused, NotSent, NoAnswer, TimeoutError):
        return ()
    members: Sequence[Mapping[str, Any]] = response.get("members", ())
    return members


async def _member(gateway: Gateway, endpoint: EtcdEndpoint) -> StoreMember:
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            status = await gateway.call_at(endpoint, "/v3/maintenance/status", {})
    except TimeoutError:
        return StoreMember(str(endpoint), reason=f"no answer within {ANSWER_TIMEOUT_S:g} s")
    except (Refused, NotSent, NoAnswer) as error:
        return StoreMember(str(endpoint), reason=str(error))
    member_id, leader = str(status["header"].get("member_id", "")), str(status.get("leader", "0"))
    if leader == "0":
        return StoreMember(str(endpoint), reason="it knows no leader of etcd", member_id=member_id)
    role = "leader" if member_id == leader else "learner" if status.get("isLearner") else "follower"
    return StoreMember(
        str(endpoint),
        role=role,
        version=str(status.get("version", "")),
        size_bytes=int(status.get("dbSize", -1)),
        member_id=member_id,
    )


def _name(member: StoreMember, listed: Sequence[Mapping[str, Any]]) -> str:
    for each in listed:
        if each.get("ID") == member.member_id or member.address in each.get("clientURLs", ()):
            return str(each.get("name", ""))
    return ""
