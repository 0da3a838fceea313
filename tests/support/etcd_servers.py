"""Servers that answer as etcd's gateway does when it fails."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from barnabas.stores.etcd_http import EtcdEndpoint

Handler = Callable[["ServedConnection"], Awaitable[None]]


class ServedConnection:
    """The server's side of a connection."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, requests: list[dict]
    ) -> None:
        self._reader = reader
        self.writer = writer
        self.requests = requests  #: of all connections of the server

    async def receive(self) -> dict:
        """Return the next request: its path, its token and its message."""
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        body = await self._reader.readexactly(int(headers["content-length"]))
        request = {"path": first.split()[1], "token": headers.get("authorization"), "body": json.loads(body)}
        self.requests.append(request)
        return request

    def send(self, message: object, status: int = 200) -> None:
        body = json.dumps(message).encode()
        self.writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))


def answering(*answers: object) -> Handler:
    """Answer one request after another; an int is a status with an error of that code of gRPC."""

    async def handle(connection: ServedConnection) -> None:
        for answer in answers:
            await connection.receive()
            connection.send(answer)

    return handle


@asynccontextmanager
async def server(
    handle: Handler, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[EtcdEndpoint, list[dict]]]:
    requests: list[dict] = []
    handling: list[asyncio.Task] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handling.append(asyncio.current_task())
        try:
            await handle(ServedConnection(reader, writer, requests))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        yield EtcdEndpoint("127.0.0.1", port, is_tls=tls is not None), requests
    await asyncio.gather(*handling)


async def stay_silent(connection: ServedConnection) -> None:
    await connection.receive()
    await connection.receive()
