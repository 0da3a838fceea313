"""Free ports for brokers that are started, killed and restarted."""

import socket
from contextlib import ExitStack

import pytest
from interop.brokers import consecutive_ports, free_ports

COUNT = 150


def listening(port: int) -> socket.socket:
    """Listen on a port as servers do."""
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", port))
    server.listen(COUNT)
    return server


def test_a_reserved_port_is_given_out_once_and_can_be_bound_repeatedly() -> None:
    ports = free_ports(COUNT)
    assert len(set(ports)) == COUNT
    for _ in range(2):
        with ExitStack() as stack:
            server = stack.enter_context(listening(ports[0]))
            clients = [
                stack.enter_context(socket.create_connection(server.getsockname())) for _ in range(COUNT)
            ]
            strangers = [stack.enter_context(socket.socket()) for _ in range(COUNT)]
            for each in strangers:
                each.bind(("127.0.0.1", 0))
            assert not set(ports) & {each.getsockname()[1] for each in [*clients, *strangers]}
    with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind(("127.0.0.1", ports[1]))


def test_consecutive_ports_are_all_reserved() -> None:
    first = consecutive_ports(9)
    for port in range(first, first + 9):
        with listening(port):
            pass
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind(("127.0.0.1", port))
