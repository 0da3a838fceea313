"""The page of policies."""

from pathlib import Path

from barnabas.testing import EmbeddedBroker
from support.consoles import visiting


def test_brokers_without_policies(kafka: EmbeddedBroker) -> None:
    with visiting(kafka.bootstrap) as person:
        page = person.get("/policies").text
    assert "No broker has policies" in page
    assert "create.topic.policy.class.name" in page
    assert "barnabas policy test" not in page


def test_the_policies_of_brokers_are_listed(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("topics:\n  - prefix: orders\n    partitions: {max: 4}\n")
    with EmbeddedBroker({"barnabas.policy.file": str(rules)}) as kafka, visiting(kafka.bootstrap) as person:
        page = person.get("/policies").text
    assert str(rules) in page
    assert "Brokers apply these policies" in page
    assert "barnabas policy test --config server.properties" in page
