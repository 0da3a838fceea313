"""How a store lies in etcd: its keys, its revisions, and the JSON of etcd's gateway for them.

`PREFIX/items/KEY` is an item. Each transaction also writes `PREFIX/last`, the id of the commit. `PREFIX/base` was
written first: a revision of the store is etcd's, less that of the base. So a store of its own in etcd counts from 1; if
others write to the same etcd, or a session ends, numbers are left out.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from barnabas.metadata.store import NEVER, Commit, Item, StoreChange


def encode(data: bytes | str) -> str:
    """Return bytes as the gateway's JSON has them."""
    return b64encode(data.encode() if isinstance(data, str) else data).decode()


def revision_of(response: Mapping[str, Any]) -> int:
    """Return etcd's revision in the header of an answer."""
    return int(response["header"]["revision"])


class Keys:
    """The keys of one store, by its prefix."""

    def __init__(self, prefix: str) -> None:
        self.first = f"{prefix}/"
        self.end = f"{prefix}0"  #: the end of the range of all keys: 0 comes after /
        self.base = f"{prefix}/base"
        self.last = f"{prefix}/last"
        self._items = f"{prefix}/items/"

    def item(self, key: str) -> str:
        return self._items + key

    def item_key(self, key: str) -> str | None:
        """Return the key of an item; None for keys that are not items."""
        return key.removeprefix(self._items) if key.startswith(self._items) else None

    @property
    def range(self) -> dict[str, Any]:
        return range_of(self.first, self.end)


def decode_key(pair: Mapping[str, Any]) -> str:
    return b64decode(pair["key"]).decode()


def decode_value(pair: Mapping[str, Any]) -> bytes:
    return b64decode(pair.get("value", ""))


class Revisions:
    """Translates revisions of the store and of etcd."""

    def __init__(self, base: Mapping[str, Any]) -> None:
        """:param base: The key `base`, as etcd has it. Its value is added, for stores that continue another one."""
        self._created_revision = int(base["create_revision"])
        self._offset = self._created_revision - int(decode_value(base))

    def is_base(self, keys: Keys, pair: Mapping[str, Any]) -> bool:
        """Return whether a key is the base that these revisions count from."""
        return decode_key(pair) == keys.base and int(pair["create_revision"]) == self._created_revision

    def of_store(self, etcd_revision: int) -> int:
        return etcd_revision - self._offset

    def of_etcd(self, revision: int) -> int:
        """Return the revision as etcd counts it; 0, as etcd says for a key that does not exist, for NEVER."""
        return NEVER if revision == NEVER else revision + self._offset

    def item(self, keys: Keys, pair: Mapping[str, Any]) -> Item | None:
        key = keys.item_key(decode_key(pair))
        return (
            None if key is None else Item(key, decode_value(pair), self.of_store(int(pair["mod_revision"])))
        )

    def last_written(self, keys: Keys, events: Iterable[Mapping[str, Any]]) -> int:
        """Return the revision of the newest event that wrote `last`; NEVER if none did."""
        written = (
            self.of_store(int(event["kv"]["mod_revision"]))
            for event in events
            if event.get("type") != "DELETE" and decode_key(event["kv"]) == keys.last
        )
        return max(written, default=NEVER)

    def commits(self, keys: Keys, events: Iterable[Mapping[str, Any]]) -> Iterator[Commit]:
        """Yield the commits of all events of some revisions.

        Removals of keys that did not exist are not among the events. A key that etcd removed with its lease is a
        commit without an id.
        """
        for revision, group in groupby(events, lambda event: int(event["kv"]["mod_revision"])):
            changes, commit_id = [], ""
            for event in group:
                name = decode_key(event["kv"])
                if (key := keys.item_key(name)) is not None:
                    is_removed = event.get("type") == "DELETE"
                    changes.append(StoreChange(key, None if is_removed else decode_value(event["kv"])))
                elif name == keys.last:
                    commit_id = decode_value(event["kv"]).decode()
            if self.of_store(revision) > NEVER:
                yield Commit(self.of_store(revision), tuple(changes), commit_id)


def compare_revision(key: str, etcd_revision: int) -> dict[str, Any]:
    """Return the condition that a key was last written at that revision; 0: that it does not exist."""
    return {"target": "MOD", "result": "EQUAL", "key": encode(key), "mod_revision": str(etcd_revision)}


def compare_not_before(key: str, etcd_revision: int) -> dict[str, Any]:
    """Return the condition that a key was last written at that revision or later."""
    revision = str(etcd_revision - 1)
    return {"target": "MOD", "result": "GREATER", "key": encode(key), "mod_revision": revision}


def compare_range(first: str, end: str, etcd_revision: int) -> dict[str, Any]:
    """Return the condition that no key from `first` to before `end` was written after that revision."""
    revision = str(etcd_revision + 1)
    return {"target": "MOD", "result": "LESS", **range_of(first, end), "mod_revision": revision}


def range_of(first: str, end: str) -> dict[str, Any]:
    return {"key": encode(first), "range_end": encode(end)}


def put(key: str, value: bytes | str, lease_id: str | None = None) -> dict[str, Any]:
    lease = {} if lease_id is None else {"lease": lease_id}
    return {"request_put": {"key": encode(key), "value": encode(value), **lease}}


def delete(key: str) -> dict[str, Any]:
    return {"request_delete_range": {"key": encode(key)}}


def delete_range(first: str, end: str) -> dict[str, Any]:
    return {"request_delete_range": range_of(first, end)}


def get(key: str) -> dict[str, Any]:
    return {"request_range": {"key": encode(key)}}


def pairs_of(response: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the keys in the answer to a range."""
    return list(response.get("kvs", ()))


def got(response: Mapping[str, Any], at: int = 0) -> Mapping[str, Any] | None:
    """Return the key that an operation of a transaction has read; None if it does not exist."""
    pairs = pairs_of(response["responses"][at]["response_range"])
    return pairs[0] if pairs else None
