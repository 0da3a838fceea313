"""docs/conformance.md is complete, and every test that it names exists."""

import ast
import re
from enum import IntEnum
from functools import cache
from pathlib import Path

import pytest

from barnabas.client.admin.cluster_control import ElectionType
from barnabas.config.alter_op import OpType
from barnabas.config.config_resource import ResourceKind
from barnabas.config.config_source import ConfigSource
from barnabas.wire.acls import AclOperation, AclPermission, PatternType, ResourceType
from barnabas.wire.errors import ErrorCode
from support.fields import paths_of
from support.nodes import KAFKA_APIS
from support.specification import ADMINISTRATIVE, DETAILED, FIELDS, GATEWAY, NUMBERS, sections

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "conformance.md"
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)(?:\[[^`]*\])?`")

#: Section -> key -> what Barnabas does, and the names of tests.
Rows = dict[str, dict[str, tuple[str, str]]]


def read() -> Rows:
    """Return the tables of the document; a row is key, text and tests."""
    found: Rows = {}
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = found.setdefault(line.removeprefix("## "), {})
        elif line.startswith("| `"):
            key, text, tests = (cell.strip() for cell in line.strip("| ").split(" | "))
            assert key.strip("`") not in section, f"{key} stands twice"
            section[key.strip("`")] = text, tests
    return found


ROWS = read()
SECTIONS = sections()


@cache
def functions_in(path: str) -> frozenset[str]:
    file = ROOT / path
    if not file.is_file():
        return frozenset()
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    return frozenset(each.name for each in nodes if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))


def test_the_document_has_every_section_in_order() -> None:
    assert list(ROWS) == list(SECTIONS)


@pytest.mark.parametrize("title", SECTIONS)
def test_a_section_has_every_row_of_the_specification(title: str) -> None:
    assert list(ROWS[title]) == list(SECTIONS[title])


@pytest.mark.parametrize("title", SECTIONS)
def test_every_row_has_a_text_and_names_existing_tests(title: str) -> None:
    for key, (text, tests) in ROWS[title].items():
        assert text, key
        names = TEST.findall(tests)
        assert names, f"{key} names no test"
        assert re.sub(TEST, "", tests).strip(", ") == "", f"{key} has more than tests in its last column"
        missing = [f"{path}::{name}" for path, name in names if name not in functions_in(path)]
        assert missing == [], key


@pytest.mark.parametrize("key", DETAILED)
def test_versions_are_called_served_if_they_are(key: int) -> None:
    spec = KAFKA_APIS[key]
    stated = {
        int(row.removeprefix("v")): not text.startswith("not served")
        for row, (text, _) in ROWS[f"{spec.name}: versions"].items()
    }
    assert stated == {version: version in spec.versions for version in stated}
    assert set(stated) >= set(range(spec.versions.first, spec.versions.last + 1))


@pytest.mark.parametrize("key", DETAILED)
def test_fields_are_those_of_the_messages(key: int) -> None:
    spec = KAFKA_APIS[key]
    for listed, message, kind in zip(
        FIELDS[key], (spec.request, spec.response), ("request", "response"), strict=True
    ):
        paths = set(paths_of(message))
        assert set(listed.split()) <= paths
        assert set(ROWS[f"{spec.name}: {kind}"]) == paths


#: Names in the protocol that differ in Kafka's clients and tools.
CLIENT_NAMES = {"1 TOPIC_CONFIG": "1 DYNAMIC_TOPIC_CONFIG"}


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("Config resource types", ResourceKind),
        ("Config sources", ConfigSource),
        ("Config operations", OpType),
        ("ACL resource types", ResourceType),
        ("ACL operations", AclOperation),
        ("ACL permission types", AclPermission),
        ("ACL pattern types", PatternType),
        ("Election types", ElectionType),
    ],
)
def test_numbers_are_those_of_the_enumerations(title: str, kind: type[IntEnum]) -> None:
    members = {f"{member.value} {member.name}" for member in kind}
    expected = {CLIENT_NAMES.get(number, number) for number in NUMBERS[title]}
    assert expected - {"0 UNKNOWN"} == members - {"0 UNKNOWN"}


def test_versions_of_the_apis_are_the_served_ones() -> None:
    for title in ("Administrative APIs", "Wire: APIs"):
        for row, (text, _) in ROWS[title].items():
            spec = KAFKA_APIS[int(row.split()[0])]
            assert row == f"{spec.api_key} {spec.name}"
            assert text.startswith(f"{spec.versions.first}-{spec.versions.last}; "), row
    assert set(ADMINISTRATIVE) <= set(KAFKA_APIS)


def test_flexible_versions_are_those_of_the_messages() -> None:
    flexible = {f"{spec.name} {spec.request.FLEXIBLE.first}" for spec in KAFKA_APIS.values()}
    assert set(GATEWAY["Wire: flexible versions"]) <= flexible


def test_error_codes_have_kafkas_names() -> None:
    for row, (text, _) in ROWS["Wire: error codes"].items():
        assert text.startswith(f"{ErrorCode(int(row)).name}"), row


def test_later_apis_are_called_served_if_they_are() -> None:
    for row, (text, _) in ROWS["Wire: later APIs"].items():
        assert text.startswith("not served") == (int(row.split()[0]) not in KAFKA_APIS), row
