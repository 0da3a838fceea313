"""docs/apis.md is up to date, and the docstring of every handler's module is true."""

import ast
import importlib.util
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from barnabas.api.registry import ApiSpec
from barnabas.wire.errors import ErrorCode
from support.nodes import APIS

ROOT = Path(__file__).resolve().parents[3]
SPECS = list(APIS.values())


def name_of(spec: ApiSpec) -> str:
    return spec.name


def module_of(spec: ApiSpec) -> ModuleType:
    return sys.modules[spec.handle.__module__]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("api_docs", ROOT / "tools" / "generate_api_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_apis_is_up_to_date(generator: ModuleType) -> None:
    written = (ROOT / "docs" / "apis.md").read_text(encoding="utf-8")
    assert written == generator.render(), "run tools/generate_api_docs.py"


@pytest.mark.parametrize("spec", SPECS, ids=name_of)
def test_a_module_docstring_starts_with_its_apis_name_key_and_versions(
    generator: ModuleType, spec: ApiSpec
) -> None:
    text = generator.text_of(spec)
    assert (text.name, text.api_key, text.first, text.last) == (spec.name, spec.api_key, *spec.versions)
    assert text.summary.endswith(".")
    assert text.errors.startswith((":", ", per "))


@pytest.mark.parametrize("spec", SPECS, ids=name_of)
def test_a_module_is_named_after_its_api(spec: ApiSpec) -> None:
    words = re.findall(r"[A-Z][a-z]*", spec.name)
    assert module_of(spec).__name__.rpartition(".")[2] == "_".join(words).lower()


@pytest.mark.parametrize("spec", SPECS, ids=name_of)
def test_notes_mention_served_versions_only(generator: ModuleType, spec: ApiSpec) -> None:
    noted = [int(match) for note in generator.text_of(spec).notes for match in re.findall(r"^v(\d+): ", note)]
    assert noted == sorted(set(noted))
    assert all(version in spec.versions for version in noted)


@pytest.mark.parametrize("spec", SPECS, ids=name_of)
def test_every_error_that_a_module_raises_by_name_is_listed_in_its_docstring(spec: ApiSpec) -> None:
    module = module_of(spec)
    raised = {
        node.attr
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "ErrorCode"
    }
    listed = set(re.findall(r"[A-Z]+(?:_[A-Z]+)+", (module.__doc__ or "").partition("Errors")[2]))
    assert listed <= set(ErrorCode.__members__)
    assert raised - {"NONE"} <= listed
