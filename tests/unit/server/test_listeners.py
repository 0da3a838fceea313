import asyncio
import random
import socket
from pathlib import Path

import pytest

from barnabas.base.clock import ManualClock
from barnabas.net.connections import NO_BOUND
from barnabas.server.broker import start_broker
from barnabas.server.listeners import FILES_RESERVED, connection_limits
from support.loop import on_loop, turns
from support.nodes import config_of


@pytest.mark.parametrize(
    ("configured", "files_max", "count_max"),
    [
        (None, None, NO_BOUND),
        (None, 20_000, 20_000 - FILES_RESERVED),
        (None, 300, 150),
        (100, 300, 100),
        (100, None, 100),
    ],
)
def test_the_connection_limit_leaves_file_descriptors_for_logs(
    tmp_path: Path, configured: int | None, files_max: int | None, count_max: int
) -> None:
    settings = {} if configured is None else {"max_connections": str(configured)}
    assert connection_limits(config_of(tmp_path, **settings), files_max).count_max == count_max


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize("turns_before", range(8))
@on_loop
async def test_a_change_that_arrives_while_the_broker_stops_opens_no_listener(
    tmp_path: Path, turns_before: int
) -> None:
    server = await start_broker(config_of(tmp_path), clock=ManualClock(), rng=random.Random(1))
    listeners, before = server.parts.listeners, server.parts.dynamic_config.current
    port = free_port()
    after = before.with_dynamic(
        {
            "listeners": f"OTHER://127.0.0.1:{port},{before.originals['listeners']}",
            "listener.security.protocol.map": "OTHER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        },
        {},
    )
    change = asyncio.create_task(listeners.reconfigure(before, after))
    await turns(turns_before)
    await server.stop()
    await change
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    assert listeners.addresses == []
