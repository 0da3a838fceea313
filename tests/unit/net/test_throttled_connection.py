import asyncio

from support.connections import THROTTLE_MS, Client
from support.loop import in_virtual_time, turns


@in_virtual_time
async def test_a_throttled_client_gets_its_response_immediately_and_is_muted() -> None:
    client = Client()
    client.send("throttle:a", "now:b", "once:c")
    assert client.received == ["a"]
    assert not client.transport.reading
    await asyncio.sleep(THROTTLE_MS / 1000 + 0.001)
    assert client.received == ["a", "b", "c"]
    assert client.transport.reading


@in_virtual_time
async def test_a_client_that_is_throttled_again_is_muted_again() -> None:
    client = Client()
    client.send("throttle:a", "throttle:b", "now:c")
    await asyncio.sleep(THROTTLE_MS / 1000 + 0.001)
    assert client.received == ["a", "b"]
    assert not client.transport.reading
    await asyncio.sleep(THROTTLE_MS / 1000 + 0.001)
    assert client.received == ["a", "b", "c"]


@in_virtual_time
async def test_a_throttled_client_that_disconnects_leaks_nothing() -> None:
    client = Client()
    client.send("throttle:a", "now:b")
    client.connection.connection_lost(None)
    await asyncio.sleep(THROTTLE_MS / 1000 + 0.001)
    assert client.received == ["a"]


@in_virtual_time
async def test_a_connection_above_the_rate_is_not_read_and_closed_after_its_delay() -> None:
    client = Client(delay_ms=50)
    client.send("now:a")
    await turns(1)
    assert client.received == []
    assert not client.transport.reading
    assert not client.transport.aborted
    await asyncio.sleep(0.051)
    assert client.transport.aborted
