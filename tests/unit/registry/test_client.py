"""Responses of registries that fail."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from barnabas.registry.client import RegistryClient, RegistryUnavailable
from barnabas.registry.errors import RegistryError
from barnabas.registry.schemas import InvalidSchema, SchemaReference, SchemaText, SchemaType

SCHEMA = SchemaText(SchemaType.AVRO, '"Item"', (SchemaReference("Item", "items", 1),))


@contextmanager
def responding(status: int, code: int) -> Iterator[RegistryClient]:
    """Serve an error for every request."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps({"error_code": code, "message": "no"}).encode())

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield RegistryClient(f"http://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("status", "code"), [(500, 50001), (503, 503), (429, 42901)])
def test_a_registry_that_fails_is_unavailable_and_not_without_the_schema(status: int, code: int) -> None:
    with responding(status, code) as client:
        with pytest.raises(
            RegistryUnavailable, match=r"the schema registry at http://127\.0\.0\.1:\d+ fails: no"
        ):
            client.by_id(1)
        with pytest.raises(RegistryUnavailable, match="fails: no"):
            client.parsed(SCHEMA)


def test_a_missing_reference_makes_a_schema_invalid_and_a_refused_one_does_not() -> None:
    with (
        responding(404, 40401) as client,
        pytest.raises(InvalidSchema, match="reference 'Item' is not found"),
    ):
        client.parsed(SCHEMA)
    with responding(403, 40301) as client, pytest.raises(RegistryError) as refused:
        client.parsed(SCHEMA)
    assert refused.value.status == 403
