from base64 import b64encode

import pytest

from barnabas.metadata.store import NEVER, Commit, Item, StoreChange
from barnabas.stores.etcd_keys import Keys, Revisions

KEYS = Keys("p")


def pair(key: str, revision: int, value: str = "") -> dict[str, str]:
    return {
        "key": b64encode(key.encode()).decode(),
        "mod_revision": str(revision),
        **({"value": b64encode(value.encode()).decode()} if value else {}),
    }


def revisions(created: int = 10, base: str = "0") -> Revisions:
    return Revisions({**pair("p/base", created, base), "create_revision": str(created)})


@pytest.mark.parametrize(("base", "first"), [("0", 1), ("500", 501)])
def test_revisions_count_from_the_base(base: str, first: int) -> None:
    translated = revisions(10, base)
    assert translated.of_store(11) == first
    assert translated.of_etcd(first) == 11
    assert translated.of_etcd(NEVER) == 0


def test_other_keys_are_no_items() -> None:
    assert revisions().item(KEYS, pair("p/items/a/b", 12, "1")) == Item("a/b", b"1", 2)
    assert revisions().item(KEYS, pair("p/last", 12, "1")) is None


def test_events_of_a_revision_are_a_commit_with_the_id_of_the_last_key() -> None:
    events = [
        {"kv": pair("p/items/b", 11, "1")},
        {"type": "DELETE", "kv": pair("p/items/a", 11)},
        {"kv": pair("p/items/empty", 11)},
        {"kv": pair("p/last", 11, "id-1")},
        {"kv": pair("p/last", 13, "id-2")},
    ]
    assert list(revisions().commits(KEYS, events)) == [
        Commit(1, (StoreChange("b", b"1"), StoreChange("a", None), StoreChange("empty", b"")), "id-1"),
        Commit(3, (), "id-2"),
    ]


def test_a_key_that_etcd_removes_with_its_lease_is_a_commit_without_an_id() -> None:
    events = [{"type": "DELETE", "kv": pair("p/items/sessions/1", 12)}]
    assert list(revisions().commits(KEYS, events)) == [Commit(2, (StoreChange("sessions/1", None),))]


def test_the_base_itself_is_no_commit() -> None:
    assert list(revisions(10).commits(KEYS, [{"kv": pair("p/base", 10, "0")}])) == []


def test_the_end_of_a_session_and_a_removal_do_not_write_the_last_key() -> None:
    events = [
        {"kv": pair("p/last", 11, "id-1")},
        {"kv": pair("p/items/last", 12)},
        {"type": "DELETE", "kv": pair("p/items/sessions/1", 13)},
        {"type": "DELETE", "kv": pair("p/last", 14)},
    ]
    assert revisions().last_written(KEYS, events) == 1
    assert revisions().last_written(KEYS, events[1:]) == NEVER
