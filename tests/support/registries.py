"""Registries for tests, and requests to them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from barnabas.registry.options import RegistrySettings
from barnabas.registry.serving import RegistryServer
from barnabas.telemetry.https import listening

HOST = "127.0.0.1"


@contextmanager
def running_registry(bootstrap: str, **settings: Any) -> Iterator[RegistryServer]:
    """Serve a registry on a free port."""
    with RegistryServer(RegistrySettings(bootstrap, **settings), listening(HOST, 0)) as server:
        yield server


class RestClient:
    """Sends requests to a registry."""

    def __init__(self, url: str, **options: Any) -> None:
        self._client = httpx.Client(base_url=url, timeout=40, **options)

    def send(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        return self._client.request(method, path, json=body, **options)

    def get(self, path: str) -> Any:
        """Return the JSON of a response, whatever its status."""
        return self.send("GET", path).json()

    def post(self, path: str, body: Any) -> Any:
        return self.send("POST", path, body).json()

    def put(self, path: str, body: Any) -> Any:
        return self.send("PUT", path, body).json()

    def delete(self, path: str) -> Any:
        return self.send("DELETE", path).json()

    def register(self, subject: str, schema: str, **fields: Any) -> Any:
        return self.post(f"/subjects/{subject}/versions", {"schema": schema, **fields})

    def close(self) -> None:
        self._client.close()


def avro_record(name: str, *fields: str) -> str:
    """Return a schema of Avro with fields of the type int; those whose names end in ? have a default."""
    parts = map(_field, fields)
    return f'{{"type":"record","name":"{name}","fields":[{",".join(parts)}]}}'


def _field(field: str) -> str:
    default = ',"default":0' if field.endswith("?") else ""
    return f'{{"name":"{field.rstrip("?")}","type":"int"{default}}}'
