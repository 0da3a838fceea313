"""Shell completion: the protocol, and bash itself."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.cli.support.live import TIMEOUT_MS, TIMEOUT_VARIABLE, call_with_timeout, timeout_ms
from barnabas.testing import EmbeddedBroker

UNREACHABLE = {"BARNABAS_BOOTSTRAP": "127.0.0.1:1"}
#: A generous limit, because a busy machine starts clients slowly.
PATIENT = {TIMEOUT_VARIABLE: "30000"}


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as kafka:
        kafka.create_topic("orders", partitions=3)
        kafka.create_topic("ordinary")
        kafka.create_topic("clicks")
        kafka.client.groups.commit_offsets("billing", {TopicPartition("orders", 0): 0})
        yield kafka


def ask(line: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Return the completions of a line whose last word is incomplete."""
    words = line.split(" ")
    variables = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_BARNABAS_COMPLETE": "complete_bash"}
    return subprocess.run(
        [sys.executable, "-m", "barnabas"],
        env=os.environ | PATIENT | environment | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("barnabas top", ["topics"]),
        ("barnabas topics describe ord", ["orders", "ordinary"]),
        ("barnabas consume cl", ["clicks"]),
        ("barnabas records delete orders:", ["orders:0", "orders:1", "orders:2"]),
        ("barnabas groups describe ", ["billing"]),
        ("barnabas configs get topic or", ["orders", "ordinary"]),
        ("barnabas configs set topic orders retention.m", ["retention.ms="]),
        ("barnabas configs get broker ", ["1", "default"]),
        ("barnabas history topic/cl", ["topic/clicks"]),
        ("barnabas history to", ["topic/"]),
        ("barnabas quotas set user=x prod", ["producer_byte_rate="]),
        ("barnabas features set transaction.v", ["transaction.version="]),
    ],
)
def test_names_of_the_cluster_are_completed(broker: EmbeddedBroker, line: str, expected: list[str]) -> None:
    answer = ask(line, {"BARNABAS_BOOTSTRAP": broker.bootstrap})
    assert sorted(answer.stdout.split()) == expected
    assert answer.stderr == ""


def test_the_broker_on_the_line_is_used(broker: EmbeddedBroker) -> None:
    answer = ask(f"barnabas topics describe -b {broker.bootstrap} cl", UNREACHABLE)
    assert answer.stdout.split() == ["clicks"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("barnabas topics describe ord", []),
        ("barnabas configs set topic orders retention.m", ["retention.ms="]),
        ("barnabas topics delete --if", ["--if-exists"]),
    ],
)
def test_without_a_broker_static_words_are_completed_silently(line: str, expected: list[str]) -> None:
    answer = ask(line, UNREACHABLE)
    assert (answer.stdout.split(), answer.stderr) == (expected, "")


def test_a_broker_that_does_not_respond_is_not_awaited() -> None:
    with EmbeddedBroker() as kafka:
        kafka.delay_next("Metadata", 60_000, times=9)
        assert call_with_timeout(kafka.bootstrap, lambda admin: admin.describe_topics()) is None
    assert TIMEOUT_MS <= 500


@pytest.mark.parametrize(("given", "expected"), [("2000", 2000), ("soon", TIMEOUT_MS), ("", TIMEOUT_MS)])
def test_the_timeout_for_the_cluster_can_be_set(
    monkeypatch: pytest.MonkeyPatch, given: str, expected: int
) -> None:
    monkeypatch.setenv(TIMEOUT_VARIABLE, given)
    assert timeout_ms() == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_script_calls_the_command(shell: str) -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "barnabas", "completion", shell], capture_output=True, text=True, check=True
    ).stdout
    assert f"_BARNABAS_COMPLETE=complete_{shell}" in printed
    checker = shutil.which(shell)
    if checker is not None:
        subprocess.run([checker, "-n"], input=printed, text=True, check=True)


@pytest.mark.parametrize(
    ("words", "cursor", "expected"),
    [
        (["barnabas", "topics", "describe", "cli"], 3, ["clicks"]),
        (["barnabas", "records", "delete", "orders", ":"], 4, ["0", "1", "2"]),
        (["barnabas", "configs", "set", "topic", "orders", "segment.b"], 5, ["segment.bytes="]),
        (["barnabas", "groups", "describe", ""], 3, ["billing"]),
    ],
)
def test_bash_completes(
    broker: EmbeddedBroker, tmp_path: Path, words: list[str], cursor: int, expected: list[str]
) -> None:
    """Bash splits words at colons, and completes only the part after them."""
    command = tmp_path / "barnabas"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m barnabas "$@"\n')
    command.chmod(0o755)
    line = " ".join(words).replace(" :", ":")
    script = f"""
        source <(barnabas completion bash)
        compopt() {{ :; }}
        COMP_WORDS=({" ".join(f"'{word}'" for word in words)}) COMP_CWORD={cursor}
        COMP_LINE='{line}' COMP_POINT={len(line)}
        _barnabas_completion barnabas
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    path = f"{tmp_path}:{os.environ['PATH']}"
    environment = os.environ | PATIENT | {"PATH": path, "BARNABAS_BOOTSTRAP": broker.bootstrap}
    answer = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert (answer.stdout.split(), answer.stderr) == (expected, "")
