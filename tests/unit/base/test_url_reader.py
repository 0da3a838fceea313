import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request

import pytest

from barnabas.base.url_reader import BYTES_MAX, read_url


@contextmanager
def server(respond: "dict[str, tuple[int, dict[str, str], bytes]]") -> Iterator[tuple[str, list[str]]]:
    """Serve responses by path; yield the address and the Authorization headers that came."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization", ""))
            status, headers, body = respond[self.path]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass

    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=serving.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{serving.server_port}", seen
    finally:
        serving.shutdown()
        thread.join()
        serving.server_close()


def test_documents_are_read_over_http_and_from_files(tmp_path: Path) -> None:
    with server({"/a": (302, {"Location": "/b"}, b""), "/b": (200, {}, b"content")}) as (address, _):
        assert read_url(f"{address}/a") == b"content"
    (tmp_path / "file").write_bytes(b"own")
    assert read_url((tmp_path / "file").as_uri()) == b"own"


def test_secrets_are_not_sent_to_another_server() -> None:
    with (
        server({"/": (200, {}, b"")}) as (other, seen),
        server({"/": (302, {"Location": f"{other}/"}, b"")}) as (address, _),
    ):
        with pytest.raises(HTTPError, match="redirected to another server"):
            read_url(Request(f"{address}/", headers={"Authorization": "Basic secret"}))
        assert seen == []


@pytest.mark.parametrize(
    ("headers", "body", "why"),
    [
        ({"Transfer-Encoding": "chunked"}, b"5\r\nab", "malformed answer"),
        ({}, b" " * (BYTES_MAX + 1), f"more than {BYTES_MAX} bytes"),
    ],
)
def test_malformed_and_endless_answers_are_errors(headers: dict[str, str], body: bytes, why: str) -> None:
    with server({"/": (200, headers, body)}) as (address, _), pytest.raises(OSError, match=why):
        read_url(f"{address}/")
    with pytest.raises(OSError, match="refused"):
        read_url(f"{address}/")
