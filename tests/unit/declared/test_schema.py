"""The published schema agrees with the parser."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given

from barnabas.declared.parser import StateFileError, read_state
from barnabas.declared.renderer import to_tree
from barnabas.declared.state import ClusterState
from support.declared_states import states
from support.documents import code_blocks

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "docs" / "declared.schema.json"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    path = ROOT / "tools" / "generate_declared_schema.py"
    spec = importlib.util.spec_from_file_location("declared_schema", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


VALIDATOR = jsonschema.Draft202012Validator(json.loads(DOCUMENT.read_text(encoding="utf-8")))


def test_the_schema_is_up_to_date(generator: ModuleType) -> None:
    written = DOCUMENT.read_text(encoding="utf-8")
    assert written == generator.render(), "run tools/generate_declared_schema.py"
    jsonschema.Draft202012Validator.check_schema(json.loads(written))


@given(states(frozenset({"topics"})))
def test_rendered_states_are_valid(state: ClusterState) -> None:
    VALIDATOR.validate(json.loads(json.dumps(to_tree(state))))


def with_names(tree: Any) -> Any:
    """Convert keys to text: YAML reads some as numbers, which JSON does not have."""
    if isinstance(tree, dict):
        return {str(key): with_names(value) for key, value in tree.items()}
    return [with_names(each) for each in tree] if isinstance(tree, list) else tree


def test_the_example_is_valid(tmp_path: Path) -> None:
    [text] = code_blocks(ROOT / "docs" / "declared.md", "yaml")
    VALIDATOR.validate(with_names(yaml.safe_load(text)))
    (tmp_path / "cluster.yaml").write_text(text)
    state = read_state(tmp_path / "cluster.yaml")
    assert len(state.sections) == 7


@pytest.mark.parametrize(
    "text",
    [
        "topic: {}",
        "topics: {a: {partitions: 0}}",
        "topics: {a: {partition: 1}}",
        "topics: {a: {configs: {retention.ms: {vault: x}}}}",
        "acls: [{resource_type: topic, resource_name: a, operations: [read]}]",
        "acls: [{resource_type: topic, principal: User:a, operations: [read]}]",
        "acls: [{resource_type: cluster, principal: a, operations: [read]}]",
        "acls: [{resource_type: cluster, principal: User:a, operations: [any]}]",
        "quotas: [{entity: {}, values: {}}]",
        "quotas: [{entity: {ip: a, user: b}, values: {}}]",
        "quotas: [{entity: {user: b}, values: {x: y}}]",
        "users: {a: {}}",
        "users: {a: {SCRAM-SHA-256: {password: hunter2}}}",
        "users: {a: {SCRAM-SHA-256: {iterations: 5}}}",
        "brokers: {one: {}}",
        "prune: [topic]",
    ],
)
def test_states_that_the_parser_rejects_are_invalid(tmp_path: Path, text: str) -> None:
    assert not VALIDATOR.is_valid(with_names(yaml.safe_load(text)))
    (tmp_path / "cluster.yaml").write_text(text)
    with pytest.raises(StateFileError):
        read_state(tmp_path / "cluster.yaml")
