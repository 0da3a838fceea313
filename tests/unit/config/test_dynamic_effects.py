"""A dynamic key either takes effect immediately, with a test for it, or is documented as having no effect."""

import ast
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from barnabas.config.definition import ConfigKey, Effect, UpdateMode
from barnabas.config.dynamic_validation import READ_AT_START
from barnabas.config.keys.broker import BROKER_KEYS
from barnabas.config.keys.client_metrics import CLIENT_METRICS_KEYS
from barnabas.config.keys.group import GROUP_KEYS
from barnabas.config.keys.quota import BROKER_QUOTA_KEYS
from barnabas.config.keys.topic import TOPIC_KEYS

TESTS = Path(__file__).resolve().parents[2]

#: Tests that set a dynamic key and check its effect. Add the test's file here when a key gets an effect.
BROKER_PROOFS = (
    "node/test_dynamic_configs.py",
    "node/test_dynamic_listeners.py",
    "node/test_dynamic_tls.py",
    "node/test_log_dirs.py",
    "node/test_several_brokers.py",
    "unit/groups/consumer/test_group_configs.py",
    "unit/server/background/test_tasks.py",
    "unit/server/test_inter_broker.py",
)
GROUP_PROOFS = ("unit/groups/consumer/test_group_configs.py", "unit/groups/consumer/test_heartbeats.py")
TOPIC_PROOFS = (
    "node/test_dynamic_topic_configs.py",
    "node/test_several_brokers.py",
    "unit/tables/test_settings.py",
)

#: Keys that are set with a prefix.
BEHIND_A_PREFIX = frozenset({"sasl.jaas.config"})


def honoured(*tables: Mapping[str, ConfigKey]) -> list[str]:
    return [
        name
        for keys in tables
        for name, key in keys.items()
        if key.effect is Effect.HONOURED
        and key.mode is not UpdateMode.READ_ONLY
        and name not in READ_AT_START
    ]


def words_of(path: Path) -> str:
    """Return every string in a file, and keyword names with dots for underscores."""
    words = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words += [node.value, node.value.replace("_", ".")]
        elif isinstance(node, ast.keyword) and node.arg:
            words.append(node.arg.replace("_", "."))
    return "\n".join(words)


@pytest.mark.parametrize(
    ("keys", "proofs"),
    [
        (honoured(BROKER_KEYS, BROKER_QUOTA_KEYS), BROKER_PROOFS),
        (honoured(TOPIC_KEYS, CLIENT_METRICS_KEYS), TOPIC_PROOFS),
        (honoured(GROUP_KEYS), GROUP_PROOFS),
    ],
    ids=["brokers", "topics and client metrics", "groups"],
)
def test_every_dynamic_key_with_an_effect_is_set_in_a_test(keys: list[str], proofs: tuple[str, ...]) -> None:
    texts = "\n".join(words_of(path) for path in map(TESTS.joinpath, proofs))
    words = set(re.findall(r"[\w.-]+", texts))
    unproved = [name for name in keys if name not in (texts if name in BEHIND_A_PREFIX else words)]
    assert unproved == [], (
        "set the key while a broker runs, in a test of these proofs, or mark it without effect"
    )


def test_a_key_without_effect_is_documented_as_such() -> None:
    page = (TESTS.parent / "docs" / "configs.md").read_text(encoding="utf-8")
    rows: dict[str, str] = {}
    for line in page.splitlines():
        if line.startswith("| `"):
            rows.setdefault(line.split("`")[1], line)  # brokers' keys come first
    for name, key in BROKER_KEYS.items():
        assert ("accepted without effect" in rows[name]) == (key.effect is Effect.NONE), name


@pytest.mark.parametrize("keys", [BROKER_KEYS, TOPIC_KEYS, GROUP_KEYS], ids=["brokers", "topics", "groups"])
def test_a_key_without_effect_is_described_as_such(keys: Mapping[str, ConfigKey]) -> None:
    for name, key in keys.items():
        is_silent = "Accepted without effect in Barnabas." not in key.description
        assert is_silent == (key.effect is Effect.HONOURED), name
