"""The client of the gateway, before servers that answer as etcd does when it fails."""

import asyncio
import socket

import h11
import pytest

from barnabas.metadata.store import OutcomeUnknown, StoreError
from barnabas.stores import etcd_gateway, etcd_http
from barnabas.stores.etcd_gateway import Credentials, Gateway, Refused
from barnabas.stores.etcd_http import EtcdEndpoint, NoAnswer
from barnabas.tls.contexts import client_context, server_context
from support.certificates import Authority
from support.etcd_servers import Handler, ServedConnection, answering, server, stay_silent
from support.loop import on_loop
from support.tls import AUTHORITY, TLS, with_keys
from support.waiting import reached


def nothing_listens() -> EtcdEndpoint:
    return EtcdEndpoint("127.0.0.1", 1)


async def drop(connection: ServedConnection) -> None:
    """End the connection after a request."""
    await connection.receive()


def error(code: int, message: str) -> dict:
    return {"error": message, "message": message, "code": code}


@on_loop
async def test_requests_follow_each_other_on_one_connection() -> None:
    async with server(answering({"n": 1}, {"n": 2})) as (endpoint, requests):
        gateway = Gateway((endpoint,))
        assert await gateway.call("/v3/a", {"x": 1}) == {"n": 1}
        assert await gateway.call("/v3/b", {"x": 2}) == {"n": 2}
        assert [(request["path"], request["body"]) for request in requests] == [
            ("/v3/a", {"x": 1}),
            ("/v3/b", {"x": 2}),
        ]
        gateway.close()


@on_loop
async def test_no_request_is_sent_on_a_connection_with_a_former_context() -> None:
    encrypting = server_context(with_keys(AUTHORITY.issue()))
    contexts = [client_context(TLS)]
    async with server(answering({"n": 1}, {"n": 2}, {"n": 3}), encrypting) as (endpoint, _):
        gateway = Gateway((endpoint,), lambda: contexts[-1])
        assert await gateway.call("/v3/a", {}) == {"n": 1}
        assert await gateway.call("/v3/a", {}) == {"n": 2}
        contexts.append(client_context(TLS))
        assert await gateway.call("/v3/a", {}) == {"n": 1}
        gateway.close()


@on_loop
async def test_a_certificate_of_the_server_that_is_not_trusted_is_reported_in_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(etcd_gateway, "RETRY_TIMEOUT_S", 0.0)
    encrypting = server_context(with_keys(Authority("Another").issue()))
    context = client_context(TLS)
    async with server(answering({"n": 1}), encrypting) as (endpoint, requests):
        gateway = Gateway((endpoint,), lambda: context)
        with pytest.raises(StoreError, match="its certificate is not trusted: unable to get local issuer"):
            await gateway.call("/v3/a", {})
        assert requests == []
        gateway.close()
        await reached(lambda: len(asyncio.all_tasks()) == 1)  # the server has given up the connection


@on_loop
async def test_another_endpoint_is_used_from_then_on_if_one_refuses_connections() -> None:
    async with server(answering({"n": 1}, {"n": 2})) as (endpoint, _):
        gateway = Gateway((nothing_listens(), endpoint))
        assert await gateway.call("/v3/a", {}, is_repeatable=False) == {"n": 1}
        assert await gateway.call("/v3/a", {}, is_repeatable=False) == {"n": 2}
        assert gateway.failovers_count == 1
        assert gateway.endpoint == endpoint
        gateway.close()


@pytest.mark.parametrize("handle", [drop, stay_silent, answering(error(14, "etcdserver: request timed out"))])
def test_a_request_without_an_answer_is_repeated_elsewhere_only_if_it_may_be(
    handle: Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etcd_gateway, "ANSWER_TIMEOUT_S", 0.3)

    @on_loop
    async def scenario() -> None:
        async with server(handle) as (failing, _), server(answering({"n": 1})) as (endpoint, requests):
            gateway = Gateway((failing, endpoint))
            with pytest.raises(OutcomeUnknown, match=str(failing)):
                await gateway.call("/v3/kv/txn", {}, is_repeatable=False)
            assert requests == []
            gateway.close()
            gateway = Gateway((failing, endpoint))
            assert await gateway.call("/v3/kv/range", {}) == {"n": 1}
            gateway.close()

    scenario()


@on_loop
async def test_a_member_without_a_leader_has_changed_nothing_so_the_next_one_is_asked() -> None:
    no_leader = answering(error(14, "etcdserver: no leader"))
    async with server(no_leader) as (follower, _), server(answering({"n": 1})) as (endpoint, _):
        gateway = Gateway((follower, endpoint))
        assert await gateway.call("/v3/kv/txn", {}, is_repeatable=False) == {"n": 1}
        gateway.close()


@on_loop
async def test_endpoints_are_tried_until_one_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(etcd_gateway, "RETRY_PAUSE_S", 0.01)
    async with server(drop) as (endpoint, _):
        pass
    gateway = Gateway((endpoint, nothing_listens()))
    asking = asyncio.create_task(gateway.call("/v3/a", {}))
    while not gateway.failovers_count:
        await asyncio.sleep(0)

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answering({"n": 1})(ServedConnection(reader, writer, []))
        writer.close()

    async with await asyncio.start_server(accept, "127.0.0.1", endpoint.port):
        assert await asking == {"n": 1}
    gateway.close()


@pytest.mark.parametrize(
    "answer",
    [
        error(3, "etcdserver: too many operations in txn request"),  # etcd 3.4 and 3.5
        {"code": 3, "message": "etcdserver: too many operations in txn request", "details": []},  # 3.6
        {
            "error": {
                "grpc_code": 3,
                "http_code": 400,
                "message": "etcdserver: too many operations in txn request",
            }
        },
    ],
)
def test_a_refusal_has_its_code_and_message(answer: dict) -> None:
    @on_loop
    async def scenario() -> None:
        async with server(answering(answer)) as (endpoint, _):
            gateway = Gateway((endpoint,))
            with pytest.raises(Refused) as raised:
                await gateway.call("/v3/kv/txn", {}, is_repeatable=False)
            assert (raised.value.code, raised.value.message) == (
                3,
                "etcdserver: too many operations in txn request",
            )
            gateway.close()

    scenario()


async def send_page(connection: ServedConnection) -> None:
    await connection.receive()
    connection.writer.write(
        b"HTTP/1.1 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
    )


async def send_list(connection: ServedConnection) -> None:
    await connection.receive()
    connection.send([1])


async def send_noise(connection: ServedConnection) -> None:
    await connection.receive()
    connection.writer.write(b"\x15\x03\x01\0\2\2F\r\n\r\n")


async def send_too_much(connection: ServedConnection) -> None:
    await connection.receive()
    connection.send("x" * 2000)


@pytest.mark.parametrize(
    ("handle", "why"),
    [
        (send_page, "HTTP status 400.*Client sent an HTTP request to an HTTPS server"),
        (send_list, "not an answer of etcd's gateway"),
        (send_noise, "illegal"),
        (send_too_much, "more than 1000 bytes"),
    ],
)
def test_what_is_not_an_answer_of_etcd_is_an_error(
    handle: Handler, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etcd_http, "ANSWER_BYTES_MAX", 1000)
    monkeypatch.setattr(etcd_gateway, "RETRY_TIMEOUT_S", 0.0)

    @on_loop
    async def scenario() -> None:
        async with server(handle) as (endpoint, _):
            gateway = Gateway((endpoint,))
            with pytest.raises(StoreError, match=f"no endpoint of etcd answers .*{why}"):
                await gateway.call("/v3/kv/range", {})
            gateway.close()

    scenario()


class Login:
    """Issues tokens; the first one expires after one request."""

    def __init__(self) -> None:
        self.issued_count = 0

    async def handle(self, connection: ServedConnection) -> None:
        while True:
            request = await connection.receive()
            if request["path"] == "/v3/auth/authenticate":
                self.issued_count += 1
                connection.send({"token": f"token-{self.issued_count}"})
            elif request["token"] == "token-1" and len(connection.requests) > 2:
                connection.send(error(16, "etcdserver: invalid auth token"), 401)
            else:
                connection.send({"token": request["token"]})


@on_loop
async def test_a_user_authenticates_once_and_again_when_the_token_has_expired() -> None:
    async with server(Login().handle) as (endpoint, requests):
        gateway = Gateway((endpoint,), None, Credentials("broker", "secret"))
        answers = [await gateway.call("/v3/kv/txn", {}, is_repeatable=False) for _ in range(3)]
        assert [answer["token"] for answer in answers] == ["token-1", "token-2", "token-2"]
        logins = [request for request in requests if request["path"] == "/v3/auth/authenticate"]
        assert [login["body"] for login in logins] == [{"name": "broker", "password": "secret"}] * 2
        gateway.close()


@on_loop
async def test_a_wrong_password_is_refused_and_not_tried_again() -> None:
    refusal = error(3, "etcdserver: authentication failed, invalid user ID or password")
    async with server(answering(refusal)) as (endpoint, requests):
        gateway = Gateway((endpoint,), None, Credentials("broker", "wrong"))
        with pytest.raises(Refused, match="authentication failed"):
            await gateway.call("/v3/kv/range", {})
        assert len(requests) == 1
        gateway.close()


async def send_lines(connection: ServedConnection) -> None:
    await connection.receive()
    http = h11.Connection(h11.SERVER)
    http.receive_data(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
    http.next_event()
    connection.writer.write(
        http.send(h11.Response(status_code=200, headers=[("Transfer-Encoding", "chunked")]))
    )
    for part in (b'{"n":1}\n{"n"', b":2}", b"\n"):
        connection.writer.write(http.send(h11.Data(data=part)))


@on_loop
async def test_a_stream_is_read_line_by_line_until_it_ends() -> None:
    async with server(send_lines) as (endpoint, _):
        gateway = Gateway((endpoint,))
        stream = await gateway.open_stream(endpoint, "/v3/watch", {})
        assert [await stream.next_line() for _ in range(2)] == [b'{"n":1}', b'{"n":2}']
        with pytest.raises(NoAnswer):
            await stream.next_line()
        stream.close()


@on_loop
async def test_the_system_probes_the_connection_of_a_stream() -> None:
    async with server(send_lines) as (endpoint, _):
        gateway = Gateway((endpoint,))
        stream = await gateway.open_stream(endpoint, "/v3/watch", {})
        connected = stream._writer.get_extra_info("socket")
        assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        stream.close()


@on_loop
async def test_an_answer_that_comes_late_is_not_that_of_the_next_request() -> None:
    answered = asyncio.Event()

    async def answer_late(connection: ServedConnection) -> None:
        request = await connection.receive()
        if request["path"] == "/v3/slow":
            answered.set()
            await connection.receive()  # the connection is closed
        connection.send({"path": request["path"]})

    async with server(answer_late) as (endpoint, _):
        gateway = Gateway((endpoint,))
        slow = asyncio.create_task(gateway.call("/v3/slow", {}))
        await answered.wait()
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)
        assert await gateway.call("/v3/quick", {}) == {"path": "/v3/quick"}
        gateway.close()
