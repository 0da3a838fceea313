"""The console's thread in a broker."""

import asyncio
import socket

import pytest

from barnabas.console import serving
from barnabas.console.embedded import EmbeddedConsole
from barnabas.server.web import Site


def site() -> Site:
    return Site(
        "127.0.0.1",
        0,
        "127.0.0.1:1",
        tls=None,
        read_only=False,
        hosts=(),
        trusted_proxies=(),
        scrape=lambda: pytest.fail("asked"),
        https=None,
    )


def test_a_console_that_fails_to_start_blocks_no_waiter(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no console today")

    monkeypatch.setattr(serving, "ConsoleServer", fail)

    async def run() -> None:
        console = EmbeddedConsole(site())
        await console.start()
        vars(console)["_thread"].join(10)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", console.port), timeout=5)
        await console.close()

    asyncio.run(run())


def test_a_console_that_is_stopped_during_its_start_stops() -> None:
    async def run() -> None:
        console = EmbeddedConsole(site())
        await console.start()
        await console.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", console.port), timeout=5)

    asyncio.run(run())
