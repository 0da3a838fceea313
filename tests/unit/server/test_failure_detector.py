"""Which brokers a failure detector suspects, in virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from barnabas.base.clock import ManualClock
from barnabas.client.core.address import BrokerAddress
from barnabas.client.core.errors import BrokerUnreachable, RequestTimedOut
from barnabas.metadata.brokers import SESSIONS, decide_register
from barnabas.metadata.decision import Decision
from barnabas.metadata.writer import MetadataWriter
from barnabas.server.failure_detector import FailureDetector
from support.images import broker
from support.loop import in_virtual_time
from support.memory_store import MemoryStore

TIMEOUT_S = 2.0
NOWHERE = BrokerAddress("", 0)


class LoopClock(ManualClock):
    """The time of the loop."""

    def monotonic_ms(self) -> int:
        return round(asyncio.get_running_loop().time() * 1000)


class Client:
    """Sends to brokers that respond at once, not at all, or refuse connections."""

    def __init__(self) -> None:
        self.silent: set[int] = set()
        self.refusing: set[int] = set()

    async def send(self, broker_id: int, _request: object) -> Any:
        if broker_id in self.refusing:
            raise BrokerUnreachable(NOWHERE, "refused")
        if broker_id in self.silent:
            await asyncio.sleep(TIMEOUT_S)
            raise RequestTimedOut(NOWHERE, "no response")


@asynccontextmanager
async def detector(broker_id: int, count: int = 3) -> AsyncIterator[tuple[Client, MetadataWriter]]:
    """Run the detector of one of several live brokers, and let it see responses of the others."""
    store, client = MemoryStore(), Client()
    writer = MetadataWriter(store)
    await writer.start()
    for number in range(1, count + 1):
        await join(writer, number, epoch=number)
    running = FailureDetector(broker_id, writer, client, LoopClock())  # type: ignore[arg-type]
    running.start()
    await asyncio.sleep(1)
    try:
        yield client, writer
    finally:
        await running.stop()
        await writer.stop()


async def join(writer: MetadataWriter, broker_id: int, epoch: int) -> None:
    await writer.write(lambda image: decide_register(image.brokers, broker(broker_id, epoch=epoch)))
    await writer.write(lambda _: Decision(None, (SESSIONS.put(str(broker_id), epoch),)))


def sessions(writer: MetadataWriter) -> set[str]:
    return set(writer.image.sessions)


@in_virtual_time
async def test_a_broker_that_refuses_connections_is_suspected_within_a_second() -> None:
    async with detector(1) as (client, writer):
        client.refusing.add(3)
        await asyncio.sleep(1)
        assert sessions(writer) == {"1", "2"}


@in_virtual_time
async def test_a_silent_broker_is_suspected_after_the_timeout() -> None:
    async with detector(1) as (client, writer):
        client.silent.add(2)
        await asyncio.sleep(TIMEOUT_S - 0.1)
        assert sessions(writer) == {"1", "2", "3"}
        await asyncio.sleep(0.5)
        assert sessions(writer) == {"1", "3"}


@in_virtual_time
async def test_the_next_broker_suspects_the_controller_and_no_other() -> None:
    async with detector(2) as (client, writer):
        client.refusing.add(3)
        await asyncio.sleep(5)
        assert sessions(writer) == {"1", "2", "3"}
    async with detector(2) as (client, writer):
        client.refusing.add(1)
        await asyncio.sleep(1)
        assert sessions(writer) == {"2", "3"}


@in_virtual_time
async def test_the_other_brokers_suspect_none() -> None:
    async with detector(3) as (client, writer):
        client.refusing |= {1, 2}
        await asyncio.sleep(5)
        assert sessions(writer) == {"1", "2", "3"}


@in_virtual_time
async def test_a_broker_that_reaches_no_other_suspects_none_unless_there_are_only_two() -> None:
    async with detector(1) as (client, writer):
        client.silent |= {2, 3}
        await asyncio.sleep(10)
        assert sessions(writer) == {"1", "2", "3"}
    async with detector(1, count=2) as (client, writer):
        client.silent.add(2)
        await asyncio.sleep(3)
        assert sessions(writer) == {"1"}


@in_virtual_time
async def test_a_broker_that_never_responds_in_its_new_epoch_is_not_suspected_again() -> None:
    async with detector(1) as (client, writer):
        client.refusing.add(3)
        await asyncio.sleep(1)
        await join(writer, 3, epoch=30)
        await asyncio.sleep(10)
        assert sessions(writer) == {"1", "2", "3"}
        client.refusing.clear()
        await asyncio.sleep(1)
        client.refusing.add(3)
        await asyncio.sleep(1)
        assert sessions(writer) == {"1", "2"}


@in_virtual_time
async def test_a_broker_that_is_cut_off_does_not_suspect_the_controller() -> None:
    for fault in ("refusing", "silent"):
        async with detector(2) as (client, writer):
            getattr(client, fault).update({1, 3})
            await asyncio.sleep(10)
            assert sessions(writer) == {"1", "2", "3"}
