"""Many requests at once while one member of etcd is silent, and another one answers."""

import asyncio
import time

import pytest

from barnabas.metadata.store import OutcomeUnknown
from barnabas.stores import etcd_gateway
from barnabas.stores.etcd_gateway import CONCURRENT_COUNT_MAX, Credentials, Gateway
from barnabas.stores.etcd_http import NoAnswer, NotSent
from support.etcd_servers import ServedConnection, server, stay_silent
from support.loop import on_loop
from support.waiting import reached

CALLS_COUNT = 4 * CONCURRENT_COUNT_MAX
LOGIN, KEEPALIVE = "/v3/auth/authenticate", "/v3/lease/keepalive"
ANSWER_TIMEOUT_S = 0.5


async def answer_all(connection: ServedConnection) -> None:
    while True:
        request = await connection.receive()
        connection.send({"token": "t"} if request["path"] == LOGIN else {"answered": request["path"]})


@pytest.fixture
def short_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(etcd_gateway, "ANSWER_TIMEOUT_S", ANSWER_TIMEOUT_S)


async def call_many(gateway: Gateway) -> float:
    """Send many requests and then a keepalive, which all must be answered; return the time of the keepalive."""
    calls = [asyncio.create_task(gateway.call("/v3/kv/range", {})) for _ in range(CALLS_COUNT)]
    await asyncio.sleep(0)
    began_s = time.monotonic()
    answer = await gateway.call(KEEPALIVE, {}, is_urgent=True)
    took_s = time.monotonic() - began_s
    assert answer == {"answered": KEEPALIVE}
    assert await asyncio.gather(*calls) == [{"answered": "/v3/kv/range"}] * CALLS_COUNT
    return took_s


@pytest.mark.usefixtures("short_timeout")
@on_loop
async def test_requests_that_have_waited_are_not_sent_to_an_endpoint_that_was_left_meanwhile() -> None:
    async with server(stay_silent) as (silent, unanswered), server(answer_all) as (endpoint, _):
        gateway = Gateway((silent, endpoint))
        took_s = await call_many(gateway)
        assert len(unanswered) == CONCURRENT_COUNT_MAX + 1
        assert took_s < 3 * ANSWER_TIMEOUT_S
        gateway.close()


@pytest.mark.usefixtures("short_timeout")
@on_loop
async def test_a_silent_member_is_asked_for_one_login_however_many_requests_need_it() -> None:
    async with server(stay_silent) as (silent, unanswered), server(answer_all) as (endpoint, requests):
        gateway = Gateway((silent, endpoint), None, Credentials("broker", "secret"))
        took_s = await call_many(gateway)
        assert [request["path"] for request in unanswered] == [LOGIN]
        assert [request["path"] for request in requests].count(LOGIN) == 1
        assert took_s < 3 * ANSWER_TIMEOUT_S
        gateway.close()


@on_loop
async def test_a_login_at_one_member_does_not_wait_for_that_at_another() -> None:
    async with server(stay_silent) as (silent, unanswered), server(answer_all) as (endpoint, _):
        gateway = Gateway((silent, endpoint), None, Credentials("broker", "secret"))
        checking = asyncio.create_task(gateway.call_at(silent, "/v3/kv/range", {}))
        await reached(lambda: unanswered)
        gateway.leave(silent)
        assert await gateway.call("/v3/kv/range", {}) == {"answered": "/v3/kv/range"}
        assert not checking.done()
        checking.cancel()
        await asyncio.gather(checking, return_exceptions=True)
        gateway.close()


@pytest.mark.usefixtures("short_timeout")
@on_loop
async def test_a_request_to_one_endpoint_alone_is_sent_there_although_it_was_left() -> None:
    async with server(stay_silent) as (silent, unanswered), server(answer_all) as (endpoint, requests):
        gateway = Gateway((silent, endpoint))
        gateway.leave(silent)
        with pytest.raises(NoAnswer):
            await gateway.call_at(silent, "/v3/kv/range", {})
        assert (len(unanswered), requests) == (1, [])
        gateway.close()


@pytest.mark.usefixtures("short_timeout")
@on_loop
async def test_a_change_whose_login_is_not_answered_was_not_sent() -> None:
    credentials = Credentials("broker", "secret")
    async with server(stay_silent) as (silent, _), server(answer_all) as (endpoint, _):
        gateway = Gateway((silent, endpoint), None, credentials)
        with pytest.raises(NotSent, match="no login"):
            await gateway.call_at(silent, "/v3/kv/txn", {})
        changed = await gateway.call("/v3/kv/txn", {}, is_repeatable=False)
        assert changed == {"answered": "/v3/kv/txn"}
        gateway.close()
        gateway = Gateway((silent, endpoint))
        with pytest.raises(OutcomeUnknown):
            await gateway.call("/v3/kv/txn", {}, is_repeatable=False)
        gateway.close()


@on_loop
async def test_an_urgent_request_does_not_wait_for_those_without_an_answer() -> None:
    async with server(stay_silent) as (silent, unanswered):
        gateway = Gateway((silent,))
        calls = [asyncio.create_task(gateway.call("/v3/kv/range", {})) for _ in range(CALLS_COUNT)]
        await reached(lambda: len(unanswered) == CONCURRENT_COUNT_MAX)
        calls.append(asyncio.create_task(gateway.call(KEEPALIVE, {}, is_urgent=True)))
        await reached(lambda: len(unanswered) > CONCURRENT_COUNT_MAX)
        assert unanswered[CONCURRENT_COUNT_MAX]["path"] == KEEPALIVE
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        gateway.close()
