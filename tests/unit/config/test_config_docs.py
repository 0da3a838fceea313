import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from barnabas.config.keys.broker import BROKER_KEYS
from barnabas.config.keys.client_metrics import CLIENT_METRICS_KEYS
from barnabas.config.keys.group import GROUP_KEYS
from barnabas.config.keys.quota import ADDRESS_QUOTA_KEYS, BROKER_QUOTA_KEYS, CLIENT_QUOTA_KEYS, SCRAM_KEYS
from barnabas.config.keys.topic import TOPIC_KEYS

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("config_docs", ROOT / "tools" / "generate_config_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_keys_is_up_to_date(generator: ModuleType) -> None:
    written = (ROOT / "docs" / "configs.md").read_text(encoding="utf-8")
    assert written == generator.render(), "run tools/generate_config_docs.py"


def test_every_key_has_a_row() -> None:
    rows = [
        line for line in (ROOT / "docs" / "configs.md").read_text().splitlines() if line.startswith("| `")
    ]
    named = [line.split("`")[1] for line in rows]
    tables = (
        BROKER_KEYS,
        TOPIC_KEYS,
        GROUP_KEYS,
        CLIENT_METRICS_KEYS,
        CLIENT_QUOTA_KEYS,
        SCRAM_KEYS,
        ADDRESS_QUOTA_KEYS,
        BROKER_QUOTA_KEYS,
    )
    expected = [name for table in tables for name in table]
    assert sorted(named[: len(expected)]) == sorted(expected)


def test_a_row_has_valid_values_and_the_effect(generator: ModuleType) -> None:
    rows = [line for line in generator.render().splitlines() if line.startswith("| `retention.ms`")]
    assert len(rows) == 1
    for part in ("long", "`604800000`", "at least -1", "honoured", "`log.retention.hours` x 3600000"):
        assert part in rows[0]
