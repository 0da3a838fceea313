"""Clients of schema registries for Node and Go, as JSON-lines programs."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from interop.clients import BINARIES, HERE, Client, Kind

PROGRAMS: dict[str, Sequence[str]] = {
    "kafkajs": ["node", str(HERE / "node" / "registry.js")],
    "sr": [str(BINARIES / "sr")],
    "srclient": [str(BINARIES / "srclient")],
}


def start(name: str, registry_url: str, bootstrap: str, log: Path, login: Sequence[str] = ()) -> Client:
    """Start a program; its source lists its operations.

    ``login`` is a user and a password for the registry.
    """
    kind = Kind(name, lambda: [*PROGRAMS[name], registry_url], {})
    return Client(kind, bootstrap, log, ("BASIC", *login) if login else ())


def produce(client: Client, topic: str, schema: dict[str, Any], value: Any) -> int:
    """Register the schema of a topic's values and send one; return the id."""
    schema_id: int = client.do("produce", topic=topic, schema=schema, value=json.dumps(value))
    return schema_id


def consume(client: Client, topic: str, count: int, message: str = "") -> list[Any]:
    """Return the first values of a topic; ``message`` is that of Protobuf, if it is not the first."""
    values: list[Any] = client.do("consume", topic=topic, count=count, schema={"message": message})
    return values
