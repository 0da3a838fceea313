"""Listening sockets."""

import socket

_BACKLOG = 128


def listening(host: str, port: int) -> socket.socket:
    """A listening socket, on any free port for 0.

    :raises OSError: When the address is in use or does not belong to this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=_BACKLOG)
