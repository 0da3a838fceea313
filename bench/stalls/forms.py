"""Expensive forms of every API, generated from its schema: arrays with as many elements as allowed, equal or
different.

For each array of a request, at any depth, there is one form in which that array is as long as possible.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import barnabas.api
from barnabas.api import registry
from barnabas.api.registry import ApiSpec
from barnabas.wire.codec import encode
from barnabas.wire.schema import Field, Message, Struct

APIS = registry.build(barnabas.api)

#: Limit for all arrays together; the broker reads 100,000.
ELEMENTS_COUNT = 90_000

#: Limit for requests without records; the broker reads 8 MiB.
REQUEST_BYTES = 7 << 20

#: APIs without a response, or that end the connection; `bombs` has requests for them.
LEFT_OUT = ("Produce", "SaslHandshake", "SaslAuthenticate", "PushTelemetry")

#: Values with which elements are valid, by field.
VALUES: Mapping[str, Any] = {
    "resource_type": 2, "resource_type_filter": 2, "resource_pattern_type": 3, "pattern_type_filter": 3,
    "operation": 3, "permission_type": 3, "host": "*", "host_filter": "*", "principal": "User:a",
    "principal_filter": "User:a", "num_partitions": 1, "replication_factor": 1, "timeout_ms": 60_000,
    "max_wait_ms": 0, "mechanism": 1, "iterations": 4_096, "salt": b"s" * 16, "salted_password": b"p" * 32,
    "entity_type": "user", "key": "producer_byte_rate", "value": 1.0, "config_operation": 0, "replica_id": -1,
    "isolation_level": 0, "partition_max_bytes": 1 << 20, "max_bytes": 1 << 20, "timestamp": -1,
    "session_timeout_ms": 30_000, "rebalance_timeout_ms": 30_000, "protocol_type": "consumer", "member_id": "",
    "group_instance_id": None, "producer_id": 1, "member_epoch": 0, "count": 2, "key_type": 0,
    "include_synonyms": True, "include_documentation": True, "include_topic_authorized_operations": True,
    "include_authorized_operations": True, "require_stable": True, "response_partition_limit": 2_000,
    "current_leader_epoch": -1, "session_epoch": -1, "generation_id_or_member_epoch": -1, "generation_id": -1,
    "transactional_id": "txn", "path": "/", "metadata": b"", "assignment": b"", "max_version_level": 1,
    "upgrade_type": 1, "endpoint_type": 1, "allow_auto_topic_creation": False, "subscribed_topic_regex": None,
    "server_assignor": None, "rack_id": None, "instance_id": None, "replicas": [1], "broker_ids": [1],
    "validate_only": False, "committed_metadata": "", "voter_directory_id": bytes(range(16)),
}  # fmt: skip

#: Numbers that distinguish elements.
INDEXES = ("partition_index", "partition", "index")

#: Strings and ids of the long array, by the index of the element.
Naming = Callable[[int], str]


@dataclass(frozen=True)
class Form:
    """One request in one form."""

    spec: ApiSpec
    name: str
    make: Callable[[], Message]  #: whether it takes up to a second

    def frame(self, correlation_id: int) -> bytes:
        """Encode header and body, without the size."""
        return frame_of(self.spec, self.make(), self.spec.versions.last, correlation_id)


def frame_of(spec: ApiSpec, request: Message, version: int, correlation_id: int) -> bytes:
    """Encode header and body of a request, without the size."""
    out = bytearray(spec.api_key.to_bytes(2, "big") + version.to_bytes(2, "big"))
    out += correlation_id.to_bytes(4, "big") + b"\x00\x06stalls"
    if spec.is_flexible(version):
        out.append(0)
    return bytes(encode(request, version, out))


def namings(topics_count: int) -> dict[str, Naming]:
    """Return naming schemes of elements: all equal, existing or missing topics, as long as possible."""
    return {
        "same": lambda _: "topic-0",
        "topics": lambda number: f"topic-{number % topics_count}",
        "unknown": lambda number: f"unknown-{number}",
        "long": lambda number: f"{number:07}" + "x" * 240,
    }


def forms(
    namings: Mapping[str, Naming], topic_ids: list[bytes], elements_count: int = ELEMENTS_COUNT
) -> Iterator[Form]:
    """Generate every form, by API."""
    for spec in APIS.values():
        if spec.name in LEFT_OUT:
            continue
        version = spec.versions.last
        paths = list(_array_paths(spec.request, version)) or [()]
        for path in paths:
            for name, naming in namings.items():
                maker = _Maker(version, path, naming, topic_ids, elements_count)
                yield Form(spec, f"{'.'.join(path) or 'plain'}, {name}", partial(maker.message, spec.request))


def _array_paths(struct: type[Struct], version: int, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for field in struct.FIELDS:
        if version not in field.versions:
            continue
        path = (*at, field.name)
        if field.is_array:
            yield path
        if field.struct is not None:
            yield from _array_paths(field.struct, version, path)


class _Maker:
    """Builds a request whose array at `path` is long, and all its others have one element."""

    def __init__(
        self,
        version: int,
        path: tuple[str, ...],
        naming: Naming,
        topic_ids: list[bytes],
        elements_count: int,
    ) -> None:
        self._elements_count = elements_count
        self._version = version
        self._path = path
        self._naming = naming
        self._topic_ids = topic_ids

    def message(self, kind: type[Message]) -> Message:
        """Build the whole request."""
        made = self.struct(kind, 0)
        assert isinstance(made, Message)
        return made

    def struct(self, kind: type[Struct], number: int, at: tuple[str, ...] = ()) -> Struct:
        """Build a struct that is element `number` of the long array, or within one."""
        values = {
            field.name: self._value(kind, field, number, (*at, field.name))
            for field in kind.FIELDS
            if self._version in field.versions
        }
        return kind(**values)

    def _value(self, kind: type[Struct], field: Field, number: int, at: tuple[str, ...]) -> Any:
        if field.is_array:
            if at == self._path:
                return [self._single(field, each, at) for each in range(self._count(field))]
            if field.name in VALUES:
                return VALUES[field.name]
            return [self._single(field, number, at)]
        return self._single(field, number, at)

    def _count(self, field: Field) -> int:
        arrays = 0 if field.struct is None else len(list(_array_paths(field.struct, self._version)))
        return min(self._elements_count // (1 + arrays), REQUEST_BYTES // (len(self._naming(0)) + 100))

    def _single(self, field: Field, number: int, at: tuple[str, ...]) -> Any:
        if field.kind == "struct":
            assert field.struct is not None
            is_left_out = field.default is None and not field.is_array
            return None if is_left_out else self.struct(field.struct, number, at)
        if field.name in VALUES and _fits(field, VALUES[field.name]):
            return VALUES[field.name]
        if field.kind == "string":
            return self._naming(number)
        if field.kind == "uuid":
            return self._id(self._naming(number), number)
        if field.kind in ("bytes", "records"):
            return b""
        if field.kind in ("bool", "float64"):
            return field.default
        if field.kind == "int8":
            return number % 100
        is_index = at == self._path or field.name in INDEXES
        return number % 30_000 if is_index else 0

    def _id(self, name: str, number: int) -> bytes:
        """Return the id of an existing topic if names are those of such topics."""
        if name.startswith("topic-"):
            return self._topic_ids[number % len(self._topic_ids)]
        return name.encode().rjust(16, b"\0")[-16:]


def _fits(field: Field, value: Any) -> bool:
    expected = {"string": str, "bytes": bytes, "bool": bool, "float64": float, "uuid": bytes}.get(
        field.kind, int
    )
    return isinstance(value, expected) or (value is None and field.default is None)
