"""A server with the protocol of Amazon S3 on loopback: moto, in a process of its own. A proxy that loses responses."""

import http.client
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from barnabas.objects.settings import StoreSettings

_STOPS_S = 30
SECRET = "a-secret-that-must-not-be-shown"


class ObjectServer:
    """A running server, and the settings to reach it."""

    def __init__(self, url: str) -> None:
        self.url = url

    @property
    def options(self) -> dict[str, str]:
        """The settings as options: names in lower case, and their values."""
        return {
            "aws_endpoint_url": self.url,
            "aws_access_key_id": "tester",
            "aws_secret_access_key": SECRET,
            "aws_region": "eu-central-1",
            "aws_allow_http": "true",
            "max_retries": "2",
            "retry_timeout": "5",
        }

    @property
    def settings(self) -> StoreSettings:
        return StoreSettings(self.options)

    @property
    def arguments(self) -> list[str]:
        """The settings as arguments of commands."""
        return [
            part for name, value in self.options.items() for part in ("--store-option", f"{name}={value}")
        ]

    def create_bucket(self, name: str) -> str:
        """Create a bucket, and return its URL."""
        request = urllib.request.Request(f"{self.url}/{name}", method="PUT")
        with urllib.request.urlopen(request):
            return f"s3://{name}"

    def unfinished_uploads_count(self, bucket: str) -> int:
        with urllib.request.urlopen(f"{self.url}/{bucket}?uploads") as response:
            return response.read().count(b"<Upload>")


#: Ends with its input. It needs its own process, because delta-rs holds the GIL while it waits for a response.
_PROGRAM = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print("http://%s:%d" % server.get_host_and_port(), flush=True)
sys.stdin.read()
server.stop()
"""


@contextmanager
def object_server() -> Iterator[ObjectServer]:
    """Run a server until the block ends."""
    command = [sys.executable, "-c", _PROGRAM]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            url = process.stdout.readline().strip()
            assert url, "the server did not start"
            yield ObjectServer(url)
        finally:
            process.stdin.close()
            process.wait(_STOPS_S)


@contextmanager
def losing_responses(url: str, method: str, lost_count: int) -> Iterator[str]:
    """Run a proxy that forwards all requests, and replaces the first responses to a method by 503; return its URL."""
    remaining = threading.Semaphore(lost_count)
    host = urlsplit(url).netloc

    class Forwarding(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            connection = http.client.HTTPConnection(host)
            connection.request(self.command, self.path, content, dict(self.headers))
            response = connection.getresponse()
            body = response.read()
            is_lost = self.command == method and remaining.acquire(blocking=False)
            self.send_response(503 if is_lost else response.status)
            for name, value in response.getheaders():
                if name.lower() not in (
                    "content-length",
                    "transfer-encoding",
                    "connection",
                    "date",
                    "server",
                ):
                    self.send_header(name, value)
            length = response.headers["Content-Length"] if self.command == "HEAD" else str(len(body))
            self.send_header("Content-Length", length)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
            connection.close()

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = forward  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Forwarding) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{proxy.server_port}"
        finally:
            proxy.shutdown()
            thread.join()
