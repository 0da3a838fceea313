"""Thousands of clients that begin a handshake and do not end it."""

import resource
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from interop.brokers import free_ports

from barnabas.client.blocking import BlockingClient
from barnabas.wire.messages.metadata import MetadataRequest
from support.process import BrokerProcess
from support.tls import AUTHORITY, TLS
from support.wire import Wire

NAMES = MetadataRequest(topics=[])
CLIENTS_COUNT = 10_000
#: They have an address of their own, so that ports of 127.0.0.1 stay free for tests that run at the same time.
FLOOD_ADDRESS = ("127.0.0.2", 0)
#: Open files of this process, besides those of the clients.
FILES_RESERVED = 500
#: Requests of a client that is connected already, during the flood.
EVERY_COUNT = 100


@pytest.fixture
def files_limit() -> Iterator[int]:
    """Raise the limit of open files as far as possible, for the broker too; return how many clients it allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield min(CLIENTS_COUNT, hard - FILES_RESERVED)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def half_a_handshake() -> bytes:
    """Return the first half of a ClientHello."""
    outgoing = ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    hello = outgoing.read()
    return hello[: len(hello) // 2]


def test_clients_connect_and_work_during_ten_thousand_half_open_handshakes(
    tmp_path: Path, files_limit: int
) -> None:
    keystore = AUTHORITY.issue().write_pem(tmp_path / "own.pem")
    plain, encrypted = free_ports(2)
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{plain},SSL://127.0.0.1:{encrypted}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
    }
    options = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    hello = half_a_handshake()
    with BrokerProcess(tmp_path / "data", *options, port=-1), ExitStack() as stack:
        wire = stack.enter_context(Wire(plain))
        for number in range(files_limit):
            client = stack.enter_context(
                socket.create_connection(("127.0.0.1", encrypted), timeout=30, source_address=FLOOD_ADDRESS)
            )
            client.sendall(hello)
            if number % EVERY_COUNT == 0:
                assert wire.ask(NAMES).topics == []
        with BlockingClient(f"127.0.0.1:{encrypted}", tls=TLS) as client_with_tls:
            assert client_with_tls.admin.describe_cluster().nodes
        assert wire.ask(NAMES).topics == []
