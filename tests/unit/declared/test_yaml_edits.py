"""Editing YAML in place: comments are kept, and the text parses to the new state."""

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from barnabas.declared.renderer import dumped
from barnabas.declared.yaml_edits import CannotEdit, edited

TEXT = """\
# The shop's cluster.
topics:
  # paid ones too
  orders:
    partitions: 6   # grows with Christmas
    configs: {retention.ms: 1000}  # short

  clicks:
    partitions: 2
# permissions
acls:
  - principal: User:alice
    operations: [read]
  # bob is new
  - principal: User:bob
    operations: [write]
"""

ALICE = {"principal": "User:alice", "operations": ["read"]}
BOB = {"principal": "User:bob", "operations": ["write"]}


def tree(orders: dict[str, Any], *acls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"topics": {"orders": orders, **more}, "acls": list(acls)}


CLICKS = {"partitions": 2}
ORDERS = {"partitions": 6, "configs": {"retention.ms": 1000}}


def changed(state: Any) -> tuple[list[str], list[str]]:
    """Return the removed and the added lines."""
    before, after = TEXT.splitlines(), edited(TEXT, state, dumped).splitlines()
    return [line for line in before if line not in after], [line for line in after if line not in before]


def test_equal_states_change_nothing() -> None:
    assert edited(TEXT, tree(ORDERS, ALICE, BOB, clicks=CLICKS), dumped) == TEXT


def test_a_value_is_replaced_in_place() -> None:
    assert changed(tree({**ORDERS, "partitions": 12}, ALICE, BOB, clicks=CLICKS)) == (
        ["    partitions: 6   # grows with Christmas"],
        ["    partitions: 12   # grows with Christmas"],
    )


def test_new_entries_are_appended() -> None:
    state = tree(
        {**ORDERS, "replication_factor": 3}, ALICE, BOB, {"principal": "User:carol"}, clicks=CLICKS, new={}
    )
    gone, new = changed({**state, "groups": {"g": {"configs": {"k": 1}}}})
    assert gone == []
    assert new == [
        "    replication_factor: 3",
        "  new: {}",
        "  - principal: User:carol",
        "groups:",
        "  g:",
        "    configs:",
        "      k: 1",
    ]


def test_removed_entries_are_deleted_and_comments_stay() -> None:
    assert changed(tree(ORDERS, BOB)) == (
        ["  clicks:", "    partitions: 2", "  - principal: User:alice", "    operations: [read]"],
        [],
    )


def test_a_flow_mapping_becomes_a_block_mapping() -> None:
    state = tree({"partitions": 6, "configs": {"retention.ms": 1, "k": "x"}}, ALICE, BOB, clicks=CLICKS)
    assert changed(state) == (
        ["    configs: {retention.ms: 1000}  # short"],
        ["    configs:", "      retention.ms: 1", "      k: x  # short"],
    )


def test_new_items_are_appended_to_their_list_whatever_they_are() -> None:
    before = "a:\n  - 1\n  - {}\n"
    assert edited(before, {"a": [1, 2, {"b": 3, "c": [4]}]}, dumped) == (
        "a:\n  - 1\n  - 2\n  - b: 3\n    c: [4]\n"
    )


def test_documents_that_cannot_be_edited_are_reported() -> None:
    with pytest.raises(CannotEdit):
        edited("a: &x {b: 1}\nc: *x\n", {"a": {"b": 2}, "c": {"b": 1}}, dumped)


keys = st.sampled_from(["a", "b", "c.d", "9", "yes"])
scalars = st.sampled_from([1, "x", "a,b", "12:30", True, "", "# no comment", "two\nlines"])
trees = st.recursive(
    scalars,
    lambda inner: st.dictionaries(keys, inner, max_size=3) | st.lists(inner, max_size=3),
    max_leaves=12,
)
documents = st.dictionaries(keys, trees, min_size=1, max_size=4)


QUICK = settings(max_examples=60, phases=(Phase.explicit, Phase.generate))


@QUICK
@given(documents, documents)
def test_any_document_can_be_edited_into_any_other(one: Any, other: Any) -> None:
    text = edited(dumped(one), other, dumped)
    assert edited(text, other, dumped) == text


@QUICK
@given(documents, documents)
def test_comments_on_their_own_lines_stay(one: Any, other: Any) -> None:
    text = "# first\n" + dumped(one) + "# last\n"
    after = edited(text, other, dumped)
    assert after.startswith("# first\n")
    assert "# last\n" in after
