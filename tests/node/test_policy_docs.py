"""The code in docs/policies.md works as it is written there."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from barnabas.cli.main import app
from barnabas.policy.cases import Counts, read_cases
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode
from support.admin import create, new_topic
from support.documents import ROOT, block_with
from support.policies import policy_module
from support.wire import Wire

PAGE = ROOT / "docs" / "policies.md"


def test_the_class_of_the_page_works_in_a_broker(tmp_path: Path) -> None:
    with policy_module(tmp_path, block_with(PAGE, "python", "class Naming")) as module:
        settings = {"create.topic.policy.class.name": module.named("Naming"), "acme.prefix": "crew."}
        with EmbeddedBroker(settings) as kafka, Wire(kafka.port) as wire:
            results = create(wire, new_topic("t"), new_topic("crew.t"))
    assert (results["t"].error_code, results["t"].error_message) == (
        ErrorCode.POLICY_VIOLATION,
        "t must begin with crew.",
    )
    assert results["crew.t"].error_code == ErrorCode.NONE


def test_the_cases_of_the_page_have_the_expected_results(tmp_path: Path) -> None:
    (tmp_path / "policies.yaml").write_text(block_with(PAGE, "yaml", "protected: true"))
    (tmp_path / "cases.yaml").write_text(block_with(PAGE, "yaml", "delete_topic"))
    try_cases(tmp_path)
    assert len(read_cases(tmp_path / "cases.yaml", Counts())) == 5


def try_cases(directory: Path) -> None:
    """Run the command of the page on the files in a directory."""
    files = (str(directory / "cases.yaml"), "--rules", str(directory / "policies.yaml"))
    done = CliRunner().invoke(app, ["policy", "test", *files])
    assert done.exit_code == 0, done.output


def test_the_examples_have_the_expected_results() -> None:
    try_cases(ROOT / "examples" / "policies")


@pytest.mark.parametrize(("topic", "code"), [("orders.t", 0), ("t", ErrorCode.POLICY_VIOLATION)])
def test_the_examples_classes_work_in_a_broker(
    topic: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "rules", raising=False)
    monkeypatch.syspath_prepend(ROOT / "examples" / "policies")
    settings = {
        "create.topic.policy.class.name": "rules:OwnedTopics",
        "alter.config.policy.class.name": "rules:BoundedRetention",
    }
    with EmbeddedBroker(settings) as kafka, Wire(kafka.port) as wire:
        assert create(wire, new_topic(topic))[topic].error_code == code
        endless = new_topic("orders.endless", configs={"retention.ms": "-1"})
        assert create(wire, endless)["orders.endless"].error_code == ErrorCode.POLICY_VIOLATION
