"""Clients that leave while a request changes the cluster."""

import pytest

from support.connections import Client
from support.loop import on_loop, turns


@on_loop
async def test_a_request_that_changes_the_cluster_ends_although_its_client_has_left() -> None:
    client = Client()
    client.send("change:a", "change:b")
    await turns(2)
    client.connection.connection_lost(ConnectionResetError())
    await turns(3)
    assert len(client.connections) == 1  # so that many of them reach the limit of connections
    await client.release("a")
    assert client.dispatcher.cancelled == []
    assert client.dispatcher.started == ["a"]
    assert client.received == []
    assert len(client.connections) == 0


@on_loop
@pytest.mark.parametrize("client_leaves_first", [True, False])
async def test_a_request_that_changes_the_cluster_is_cancelled_when_all_connections_close(
    client_leaves_first: bool,
) -> None:
    client = Client()
    client.send("change:a")
    await turns(2)
    if client_leaves_first:
        client.connection.connection_lost(None)
    client.connections.abort_all()
    if not client_leaves_first:
        client.connection.connection_lost(None)
    await turns(3)
    assert client.dispatcher.cancelled == ["a"]
    assert len(client.connections) == 0
