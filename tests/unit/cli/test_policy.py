"""`barnabas policy` against files and a fake broker."""

import json
from pathlib import Path

import pytest

from support.policies import NAMING, policy_module
from unit.cli.conftest import Run

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "policies"
RULES = "topics: [{name: '[a-z]+', partitions: {max: 2}}]"


@pytest.fixture
def rules(tmp_path: Path) -> str:
    path = tmp_path / "policies.yaml"
    path.write_text(RULES)
    return str(path)


@pytest.fixture
def cases(tmp_path: Path) -> str:
    path = tmp_path / "cases.yaml"
    path.write_text(
        "- create_topic: {topic: good}\n  expect: allowed\n- create_topic: {topic: BAD}\n  expect: allowed\n"
    )
    return str(path)


def test_cases_with_expected_results_are_exit_code_0(run: Run) -> None:
    result = run("policy", "test", str(EXAMPLES / "cases.yaml"), "--rules", str(EXAMPLES / "policies.yaml"))
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["line", "change", "expected", "result", "reason"]
    assert {line.split()[0] for line in lines[1:]} == {"ok"}


def test_an_unexpected_result_is_exit_code_1(run: Run, rules: str, cases: str) -> None:
    result = run("policy", "test", cases, "--rules", rules)
    assert result.exit_code == 1
    assert [line.split()[0] for line in result.stdout.splitlines()[1:]] == ["ok", "NOT"]
    assert "Topic name 'BAD' must match [a-z]+." in result.stdout
    assert "1 of 2 results are not as expected" in result.stderr


def test_results_can_be_printed_as_json(run: Run, rules: str, cases: str) -> None:
    result = run("policy", "test", cases, "--rules", rules, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)[1] == {
        "change": "create topic BAD",
        "line": 3,
        "expected": "allowed",
        "says": None,
        "result": "refused",
        "why": "Topic name 'BAD' must match [a-z]+.",
        "as_expected": False,
    }
    assert json.loads(result.stderr)["error"] == "FAILED"


def test_a_class_is_tested_with_the_brokers_configuration(run: Run, tmp_path: Path, cases: str) -> None:
    text = NAMING.replace('"team."', "self.prefix").replace(
        'calls.append(("configure", configs))', 'self.prefix = configs["acme.prefix"]'
    )
    properties = tmp_path / "server.properties"
    with policy_module(tmp_path, text) as module:
        properties.write_text(f"create.topic.policy.class.name={module.named('Naming')}\nacme.prefix=g\n")
        by_file = run("policy", "test", cases, "--config", str(properties))
        assert [line.split()[0] for line in by_file.stdout.splitlines()[1:]] == ["ok", "NOT"]
        named = ("--create-topic", module.named("Naming"))
        by_option = run("policy", "test", cases, *named, "--set", "acme.prefix=B")
        assert [line.split()[0] for line in by_option.stdout.splitlines()[1:]] == ["NOT", "ok"]


def test_without_cases_the_clusters_topics_are_tested(run: Run, rules: str) -> None:
    run("topics", "create", "small", "-p", "2")
    assert run("policy", "test", "--rules", rules).exit_code == 0
    run("topics", "create", "large", "-p", "3")
    result = run("policy", "test", "--rules", rules)
    assert result.exit_code == 1
    assert "Topic 'large' has 3 partitions: it must be at most 2." in result.stdout
    assert "1 of 2 results" in result.stderr


def test_configs_of_the_clusters_topics_are_tested(run: Run, tmp_path: Path) -> None:
    rules = tmp_path / "policies.yaml"
    rules.write_text("topics: [{configs: {retention.ms: {max: 500}}}]")
    run("topics", "create", "t", "-c", "retention.ms=1000")
    assert "retention.ms of topic 't' is '1000'" in run("policy", "test", "--rules", str(rules)).stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "no policy configured"),
        (["--rules", "missing.yaml"], "No such file or directory"),
        (["--create-topic", "not_there:P"], "No module named 'not_there'"),
        (["--create-topic", "java.Class"], "must be a Python class as package.module:Class"),
    ],
)
def test_invalid_arguments_are_exit_code_2(run: Run, arguments: list[str], says: str) -> None:
    result = run("policy", "test", *arguments)
    assert result.exit_code == 2
    assert says in result.stderr
    assert "Traceback" not in result.stderr


def test_a_missing_cases_file_is_exit_code_3(run: Run) -> None:
    result = run("policy", "test", "missing.yaml", "--create-topic", "not_there:P")
    assert result.exit_code == 3
    assert "missing.yaml: No such file or directory" in result.stderr
