"""The members of etcd, for `barnabas cluster status`: which of them answer, and which one leads."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.base.store_member import StoreMember
from barnabas.stores.etcd_gateway import Gateway, Refused
from barnabas.stores.etcd_http import EtcdEndpoint, NoAnswer, NotSent

#: How long a member may take for each of two answers: a client waits 2 s for the report of a broker.
ANSWER_TIMEOUT_S = 0.8


async def describe_members(gateway: Gateway) -> list[StoreMember]:
    """Return the member behind each endpoint; it has a name only if etcd lets the user list the members."""
    endpoints = gateway.endpoints
    statuses = await asyncio.gather(*(_status(gateway, endpoint) for endpoint in endpoints))
    answers = list(zip(endpoints, statuses, strict=True))
    lists = await asyncio.gather(
        *(_list(gateway, endpoint) for endpoint, status in answers if isinstance(status, dict))
    )
    listed = max(lists, key=len, default=())
    return [_described(str(endpoint), status, listed) for endpoint, status in answers]


async def _status(gateway: Gateway, endpoint: EtcdEndpoint) -> dict[str, Any] | str:
    """Return the status of a member, empty if the user may not see it; or why the member is unavailable."""
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            return await gateway.call_at(endpoint, "/v3/maintenance/status", {})
    except TimeoutError:
        return f"no answer within {ANSWER_TIMEOUT_S:g} s"
    except Refused:
        return {}
    except (NotSent, NoAnswer) as error:
        return str(error)


async def _list(gateway: Gateway, endpoint: EtcdEndpoint) -> Sequence[Mapping[str, Any]]:
    """Return the members that an endpoint lists; none if it does not answer, or refuses."""
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            response = await gateway.call_at(endpoint, "/v3/cluster/member/list", {})
    except (Refused, NotSent, NoAnswer, TimeoutError):
        return ()
    members: Sequence[Mapping[str, Any]] = response.get("members", ())
    return members


def _described(
    address: str, status: Mapping[str, Any] | str, listed: Sequence[Mapping[str, Any]]
) -> StoreMember:
    member_id = status["header"].get("member_id") if isinstance(status, dict) and status else None
    names = (
        str(each.get("name", ""))
        for each in listed
        if each.get("ID") == member_id or address in each.get("clientURLs", ())
    )
    name = next(names, "")
    if isinstance(status, str):
        return StoreMember(address, name, reason=status)
    if not status:
        return StoreMember(address, name, "unknown")
    leader = status.get("leader", "0")
    if leader == "0":
        return StoreMember(address, name, reason="it knows no leader of etcd")
    role = "leader" if member_id == leader else "learner" if status.get("isLearner") else "follower"
    return StoreMember(address, name, role, str(status.get("version", "")), int(status.get("dbSize", 0)))
