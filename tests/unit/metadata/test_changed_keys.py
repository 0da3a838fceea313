from barnabas.metadata.brokers import BROKERS, SESSIONS
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.store import StoreChange
from barnabas.metadata.topics import PARTITION_STATES, TOPICS

CHANGED = ChangedKeys(
    (
        StoreChange("topics/b", b"{}"),
        StoreChange("partition_states/0a/1", b"{}"),
        StoreChange("topics/a", None),
    )
)


def test_the_keys_of_a_type_are_in_the_order_of_the_commit() -> None:
    assert CHANGED.of(TOPICS) == ["b", "a"]


def test_a_key_may_contain_slashes() -> None:
    assert CHANGED.of(PARTITION_STATES) == ["0a/1"]


def test_a_type_without_changes_has_no_keys() -> None:
    assert list(CHANGED.of(BROKERS)) == []
    assert CHANGED.contains_any_of((BROKERS, TOPICS))
    assert not CHANGED.contains_any_of((BROKERS, SESSIONS))
