"""An etcd in memory, behind the gateway's interface: its keys, watches, backups, and members that fail."""

import asyncio
import copy
import json
from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from barnabas.stores.etcd_gateway import Gateway
from barnabas.stores.etcd_http import EtcdEndpoint, HttpConnection, NoAnswer
from barnabas.stores.etcd_keys import encode

ENDPOINT = EtcdEndpoint("etcd", 2379)


class FakeEtcd:
    """The state of an etcd, which may be shared with others. It has no leases."""

    def __init__(self) -> None:
        self.revision = 1
        self._pairs: dict[bytes, dict[str, str]] = {}
        self._events: list[dict[str, Any]] = []
        self._compacted_revision = 0
        self.streams: list[FakeStream] = []

    def put(self, key: str, value: str = "") -> None:
        """Write a key as another user of etcd does."""
        self._write([{"request_put": {"key": encode(key), "value": encode(value)}}])

    def backup(self) -> Any:
        return copy.deepcopy((self.revision, self._pairs, self._events))

    def restore(self, backup: Any, *, bump: int = 0) -> None:
        """Start again from a backup.

        :param bump: As of `etcdutl snapshot restore --bump-revision --mark-compacted`.
        """
        self.revision, self._pairs, self._events = copy.deepcopy(backup)
        if bump:
            self.revision += bump
            self._compacted_revision = self.revision
        for stream in self.streams:
            stream.end()

    def hold_watches(self) -> None:
        """Let the watches that are open show nothing more, as if their connections were cut."""
        for stream in self.streams:
            stream.is_held = True

    def answer(self, path: str, message: Mapping[str, Any]) -> dict[str, Any]:
        match path:
            case "/v3/kv/range":
                answer = self._range(message)
            case "/v3/kv/txn":
                answer = self._transact(message)
            case _:
                raise AssertionError(path)
        return {"header": {"revision": str(self.revision)}, **answer}

    def watch(self, message: Mapping[str, Any]) -> "FakeStream":
        create = message["create_request"]
        stream = FakeStream(create)
        first = int(create["start_revision"])
        if first <= self._compacted_revision:
            stream.send({"canceled": True, "compact_revision": str(self._compacted_revision)})
        else:
            stream.send({"created": True})
            stream.show([event for event in self._events if int(event["kv"]["mod_revision"]) >= first])
            self.streams.append(stream)
        return stream

    def _range(self, message: Mapping[str, Any]) -> dict[str, Any]:
        return {"kvs": [self._pairs[key] for key in self._keys(message)]}

    def _keys(self, message: Mapping[str, Any]) -> list[bytes]:
        return [key for key in sorted(self._pairs) if _contains(message, key)]

    def _transact(self, message: Mapping[str, Any]) -> dict[str, Any]:
        succeeded = all(self._holds(condition) for condition in message.get("compare", ()))
        operations = message.get("success" if succeeded else "failure", ())
        self._write(operations)
        responses = [
            {"response_range": self._range(operation["request_range"])}
            if "request_range" in operation
            else {}
            for operation in operations
        ]
        return {"succeeded": succeeded, "responses": responses}

    def _holds(self, condition: Mapping[str, Any]) -> bool:
        keys = self._keys(condition) if "range_end" in condition else [b64decode(condition["key"])]
        expected = int(condition["mod_revision"])
        found = [int(self._pairs[key]["mod_revision"]) if key in self._pairs else 0 for key in keys]
        compare = {"EQUAL": int.__eq__, "LESS": int.__lt__, "GREATER": int.__gt__}[condition["result"]]
        return all(compare(revision, expected) for revision in found)

    def _write(self, operations: Any) -> None:
        events = []
        revision = str(self.revision + 1)
        for operation in operations:
            if (put := operation.get("request_put")) is not None:
                key = b64decode(put["key"])
                created = self._pairs.get(key, {}).get("create_revision", revision)
                pair = {"key": put["key"], "value": put["value"]}
                self._pairs[key] = {**pair, "create_revision": created, "mod_revision": revision}
                events.append({"kv": self._pairs[key]})
            elif (removal := operation.get("request_delete_range")) is not None:
                for key in self._keys(removal):
                    del self._pairs[key]
                    events.append({"type": "DELETE", "kv": {"key": encode(key), "mod_revision": revision}})
        if events:
            self.revision += 1
            self._events += events
            for stream in self.streams:
                stream.show(events)


class FakeStream(HttpConnection):
    """The stream of a watch."""

    def __init__(self, watched: Mapping[str, Any]) -> None:
        self.received_count = 0
        self.is_held = False
        self._watched = watched
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()

    def send(self, message: Mapping[str, Any]) -> None:
        if not self.is_held:
            self._lines.put_nowait(json.dumps({"result": message}).encode())

    def show(self, events: list[dict[str, Any]]) -> None:
        if shown := [event for event in events if _contains(self._watched, b64decode(event["kv"]["key"]))]:
            self.send({"events": shown})

    def end(self) -> None:
        self._lines.put_nowait(None)

    async def next_line(self) -> bytes:
        line = await self._lines.get()
        if line is None:
            raise NoAnswer("the stream has ended")
        self.received_count += len(line)
        return line

    def close(self) -> None:
        self.is_held = True


class FakeGateway(Gateway):
    """A client of a `FakeEtcd`, in place of one that uses connections."""

    def __init__(self, etcd: FakeEtcd) -> None:
        super().__init__((ENDPOINT,))
        self._etcd = etcd

    async def call(
        self, path: str, message: Mapping[str, Any], *, is_repeatable: bool = True, is_urgent: bool = False
    ) -> dict[str, Any]:
        return await self.call_at(self.endpoint, path, message)

    async def call_at(self, endpoint: EtcdEndpoint, path: str, message: Mapping[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        return self._etcd.answer(path, message)

    async def open_stream(
        self, endpoint: EtcdEndpoint, path: str, message: Mapping[str, Any]
    ) -> HttpConnection:
        await asyncio.sleep(0)
        return self._etcd.watch(message)


def _contains(message: Mapping[str, Any], key: bytes) -> bool:
    first = b64decode(message["key"])
    return first <= key < b64decode(message["range_end"]) if "range_end" in message else key == first
