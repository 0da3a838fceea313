"""The tables of keys against the facts of Apache Kafka 4.3.1."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.config.definition import ConfigKey, UpdateMode
from barnabas.config.keys.broker import BROKER_KEYS
from barnabas.config.keys.group import GROUP_KEYS
from barnabas.config.keys.quota import ADDRESS_QUOTA_KEYS, BROKER_QUOTA_KEYS, CLIENT_QUOTA_KEYS
from barnabas.config.keys.topic import TOPIC_KEYS
from barnabas.config.validators import Range
from barnabas.config.values import format_value

TABLES: dict[str, Mapping[str, ConfigKey]] = {
    "broker": BROKER_KEYS,
    "topic": TOPIC_KEYS,
    "group": GROUP_KEYS,
    "quota-broker": BROKER_QUOTA_KEYS,
    "quota-user": CLIENT_QUOTA_KEYS,
    "quota-ip": ADDRESS_QUOTA_KEYS,
}
MODES = {
    "read-only": UpdateMode.READ_ONLY,
    "per-broker": UpdateMode.PER_BROKER,
    "cluster-wide": UpdateMode.CLUSTER_WIDE,
}


class Fact(NamedTuple):
    resource: str
    name: str
    type: str
    default: str
    bounds: str
    mode: str
    visibility: str


def read_facts() -> list[Fact]:
    text = Path(__file__).with_name("kafka_4_3_1_keys.tsv").read_text()
    return [Fact(*line.split("\t")) for line in text.splitlines() if not line.startswith("#")]


FACTS = read_facts()


def kafka_bounds(key: ConfigKey) -> str:
    if not isinstance(key.validator, Range):
        return "-"
    low, high = key.validator
    return f"[{low},...]" if high is None else f"[{low},...,{high}]"


@pytest.mark.parametrize("fact", FACTS, ids=[f"{fact.resource}:{fact.name}" for fact in FACTS])
def test_a_key_has_kafkas_type_default_bounds_and_mode(fact: Fact) -> None:
    key = TABLES[fact.resource][fact.name]
    default = format_value(key.default)
    assert key.type.name == fact.type
    assert default == (fact.default[1:] if fact.default.startswith("=") else None)
    assert kafka_bounds(key) == fact.bounds
    assert fact.mode in ("-", next(name for name, mode in MODES.items() if mode is key.mode))
    assert key.internal == (fact.visibility == "internal")


@pytest.mark.parametrize("resource", TABLES)
def test_a_key_that_kafka_4_3_lacks_has_its_origin(resource: str) -> None:
    known = {fact.name for fact in FACTS if fact.resource == resource}
    strangers = {name: key.since for name, key in TABLES[resource].items() if name not in known}
    assert set(strangers.values()) <= {"4.4", "Barnabas"}
    assert all(name.startswith("barnabas.") == (since == "Barnabas") for name, since in strangers.items())


def test_the_number_of_facts_equals_kafkas_number_of_keys() -> None:
    counts = {resource: sum(fact.resource == resource for fact in FACTS) for resource in TABLES}
    assert counts["broker"] == 360
    assert counts["topic"] == 34
    assert counts["group"] == 17


@pytest.mark.parametrize("resource", TABLES)
def test_every_key_is_documented_in_a_sentence(resource: str) -> None:
    for key in TABLES[resource].values():
        assert key.documentation.endswith("."), key.name
        assert len(key.documentation.split()) >= 3, key.name


@pytest.mark.parametrize(("table", "sources"), [(TOPIC_KEYS, BROKER_KEYS), (GROUP_KEYS, BROKER_KEYS)])
def test_synonyms_name_broker_keys_of_the_same_kind(
    table: Mapping[str, ConfigKey], sources: Mapping[str, ConfigKey]
) -> None:
    synonyms = [(key, synonym) for key in table.values() for synonym in key.synonyms]
    assert synonyms
    for key, synonym in synonyms:
        assert (sources[synonym.name].type is key.type) or synonym.factor > 1, key.name
