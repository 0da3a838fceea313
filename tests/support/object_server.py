"""A server with the protocol of Amazon S3 in this process, on loopback: moto."""

import logging
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from moto.server import ThreadedMotoServer

from barnabas.objects.settings import StoreSettings

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


@contextmanager
def object_server() -> Iterator[ObjectServer]:
    """Run a server until the block ends."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield ObjectServer(f"http://{host}:{port}")
    finally:
        server.stop()
