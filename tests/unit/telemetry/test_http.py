import asyncio
import socket

import pytest
import uvloop

from barnabas.telemetry import http, names
from barnabas.telemetry.http import REQUEST_SIZE_MAX_BYTES, MetricsServer, parse_listener
from barnabas.telemetry.metrics import MetricsRegistry
from barnabas.tls.contexts import client_context, server_context
from barnabas.tls.settings import KeyStore, TlsSettings, TrustStore
from support.certificates import Authority

SCRAPE = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9404\r\nAccept: text/plain\r\n\r\n"
LONG_S = 30.0
AUTHORITY = Authority()
ISSUED = AUTHORITY.issue()


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request):
    def run_in_loop(conversation, **options):
        async def main():
            registry = MetricsRegistry()
            registry.add_metric(names.PARTITIONS, lambda: [({}, 12)])
            server = MetricsServer(registry, "127.0.0.1:0", **{"timeout_s": LONG_S, **options})
            await server.start()
            try:
                return await asyncio.wait_for(conversation(server), LONG_S)
            finally:
                await server.close()

        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(main())

    return run_in_loop


async def ask(server, *chunks):
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    for chunk in chunks:
        writer.write(chunk)
        await writer.drain()
    answer = await reader.read()
    writer.close()
    return parse(answer)


def parse(answer):
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert int(headers["Content-Length"]) == len(body)
    assert headers["Connection"] == "close"
    return status, headers, body.decode()


def test_metrics_are_served_as_prometheus_text(run):
    status, headers, body = run(lambda server: ask(server, SCRAPE))
    assert status == "HTTP/1.1 200 OK"
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert body.endswith("# TYPE barnabas_partitions gauge\nbarnabas_partitions 12.0\n")


def test_metrics_are_served_over_https(run):
    keys = KeyStore("PEM", key=ISSUED.key_pem(), certificate_chain=ISSUED.certificate_pem)
    trusting = client_context(TlsSettings(trust=TrustStore("PEM", certificates=AUTHORITY.pem)))

    async def converse(server):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=trusting)
        writer.write(SCRAPE)
        status, *_ = parse(await reader.read())
        writer.close()
        return status

    assert run(converse, tls=server_context(TlsSettings(keys))) == "HTTP/1.1 200 OK"


def test_a_client_without_tls_gets_nothing_from_https(run):
    keys = KeyStore("PEM", key=ISSUED.key_pem(), certificate_chain=ISSUED.certificate_pem)

    async def converse(server):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(SCRAPE)
        answer = await reader.read()
        writer.close()
        return answer

    assert b"200 OK" not in run(converse, tls=server_context(TlsSettings(keys)))


def test_a_request_may_arrive_in_fragments(run):
    status, _, _ = run(lambda server: ask(server, SCRAPE[:9], SCRAPE[9:40], SCRAPE[40:]))
    assert status == "HTTP/1.1 200 OK"


def test_a_query_after_the_path_is_ignored(run):
    status, _, body = run(lambda server: ask(server, b"GET /metrics?name[]=x HTTP/1.1\r\n\r\n"))
    assert status == "HTTP/1.1 200 OK"
    assert "barnabas_partitions 12.0" in body


def test_the_root_links_to_the_metrics(run):
    status, _, body = run(lambda server: ask(server, b"GET / HTTP/1.1\r\n\r\n"))
    assert status == "HTTP/1.1 200 OK"
    assert body == "This is a Barnabas broker: its metrics are at /metrics.\n"


@pytest.mark.parametrize("host", [b"10.0.0.7:9404", b"localhost", b"[::1]:9404", b"Kafka.Example:9404"])
def test_scrapers_may_use_the_address_localhost_or_a_configured_name(run, host):
    request = b"GET /metrics HTTP/1.1\r\nHOST: " + host + b"\r\n\r\n"
    status, _, _ = run(lambda server: ask(server, request), hosts=["kafka.example"])
    assert status == "HTTP/1.1 200 OK"


@pytest.mark.parametrize("host", [b"evil.example", b"127.0.0.1.evil.example:9404", b"", b"<script>"])
def test_a_page_whose_name_resolves_here_cannot_read_metrics(run, host):
    request = b"GET /metrics HTTP/1.1\r\nhost: " + host + b"\r\n\r\n"
    status, _, body = run(lambda server: ask(server, request))
    assert status == "HTTP/1.1 421 Misdirected Request"
    assert "barnabas.console.hosts" in body


@pytest.mark.parametrize("path", [b"/metric", b"/metrics/", b"/../etc/passwd", b"*"])
def test_any_other_path_is_not_found(run, path):
    status, _, _ = run(lambda server: ask(server, b"GET " + path + b" HTTP/1.1\r\n\r\n"))
    assert status == "HTTP/1.1 404 Not Found"


@pytest.mark.parametrize("method", [b"POST", b"PUT", b"DELETE", b"HEAD", b"get"])
def test_any_other_method_is_not_allowed(run, method):
    status, headers, _ = run(lambda server: ask(server, method + b" /metrics HTTP/1.1\r\n\r\n"))
    assert status == "HTTP/1.1 405 Method Not Allowed"
    assert headers["Allow"] == "GET"


@pytest.mark.parametrize("line", [b"", b"GET", b"GET /metrics", b"GET /metrics HTTP/2", b"\x00\xff \x80 a b"])
def test_a_request_that_is_not_http_is_a_bad_request(run, line):
    status, _, _ = run(lambda server: ask(server, line + b"\r\n\r\n"))
    assert status == "HTTP/1.1 400 Bad Request"


def test_a_request_that_is_too_long_is_rejected(run):
    request = b"GET /metrics HTTP/1.1\r\nCookie: " + b"x" * REQUEST_SIZE_MAX_BYTES
    status, _, body = run(lambda server: ask(server, request))
    assert status == "HTTP/1.1 431 Request Header Fields Too Large"
    assert body == f"The request is too large: at most {REQUEST_SIZE_MAX_BYTES} bytes are allowed.\n"


async def is_dropped(reader):
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


def test_a_client_that_sends_nothing_is_dropped_after_a_timeout(run):
    async def conversation(server):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(SCRAPE[:20])
        dropped = await is_dropped(reader)
        writer.close()
        return dropped

    assert run(conversation, timeout_s=0.05)


def test_a_client_that_reads_nothing_is_dropped_after_a_timeout(run, monkeypatch):
    monkeypatch.setattr(http, "exposition", lambda families: b"x" * 50_000_000)

    async def conversation(server):
        client = await connect_with_small_buffer(server.port)
        await asyncio.get_running_loop().sock_sendall(client, SCRAPE)
        while not server._connections:
            await asyncio.sleep(0)
        await asyncio.gather(*server._connections)
        client.close()
        return len(server._connections)

    assert run(conversation, timeout_s=0.2) == 0


async def connect_with_small_buffer(port):
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", port))
    return client


def test_a_client_that_disconnects_early_does_no_harm(run):
    async def conversation(server):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(SCRAPE[:10])
        writer.close()
        await writer.wait_closed()
        return await ask(server, SCRAPE)

    assert run(conversation)[0] == "HTTP/1.1 200 OK"


def test_connections_beyond_the_limit_are_dropped_and_later_ones_served(run, monkeypatch):
    monkeypatch.setattr(http, "CONNECTIONS_MAX", 1)

    async def conversation(server):
        first_reader, first = await asyncio.open_connection("127.0.0.1", server.port)
        second_reader, second = await asyncio.open_connection("127.0.0.1", server.port)
        assert await is_dropped(second_reader)
        second.close()
        first.write(SCRAPE)
        assert parse(await first_reader.read())[0] == "HTTP/1.1 200 OK"
        first.close()
        await asyncio.gather(*server._connections)
        return await ask(server, SCRAPE)

    assert run(conversation)[0] == "HTTP/1.1 200 OK"


def test_concurrent_scrapes_are_all_answered(run):
    async def conversation(server):
        return await asyncio.gather(*(ask(server, SCRAPE) for _ in range(10)))

    assert {status for status, _, _ in run(conversation)} == {"HTTP/1.1 200 OK"}


def test_close_drops_open_connections_and_frees_the_port(run):
    async def conversation(server):
        port = server.port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await server.close()
        assert await is_dropped(reader)
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        again = MetricsServer(MetricsRegistry(), f":{port}")
        await again.start()
        assert again.port == port
        await again.close()

    run(conversation)


def test_a_server_that_was_never_started_can_be_closed():
    asyncio.run(MetricsServer(MetricsRegistry()).close())


def test_a_port_in_use_is_an_error_at_the_start(run):
    async def conversation(server):
        with pytest.raises(OSError, match="in use"):
            await MetricsServer(MetricsRegistry(), f"127.0.0.1:{server.port}").start()

    run(conversation)


@pytest.mark.parametrize(
    ("listener", "expected"),
    [
        (":9404", ("127.0.0.1", 9404)),
        ("0.0.0.0:9404", ("0.0.0.0", 9404)),
        ("localhost:0", ("localhost", 0)),
        ("[::1]:65535", ("::1", 65_535)),
    ],
)
def test_a_listener_is_host_and_port(listener, expected):
    assert parse_listener(listener) == expected


@pytest.mark.parametrize(
    "listener", ["", "9404", "localhost:", "localhost:http", "localhost:65536", "a:-1", "a:²"]
)
def test_an_invalid_listener_is_rejected_with_its_value(listener):
    with pytest.raises(ValueError, match="expected HOST:PORT with a port from 0 to 65535") as error:
        parse_listener(listener)
    assert repr(listener) in str(error.value)
