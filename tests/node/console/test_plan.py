"""Plans of declared states in the console."""

from collections.abc import Iterator

import pytest

from barnabas.testing import EmbeddedBroker
from support.consoles import Visitor, visiting

STATE = """
topics:
  orders:
    partitions: 4
    configs: {retention.ms: 1000}
"""


@pytest.fixture
def person(kafka: EmbeddedBroker) -> Iterator[Visitor]:
    with visiting(kafka.bootstrap) as visitor:
        yield visitor


def test_changes_are_shown_by_key_and_not_applied(kafka: EmbeddedBroker, person: Visitor) -> None:
    kafka.create_topic("orders", partitions=2, configs={"retention.ms": "500"})
    page = person.submit("/plan", text=STATE)
    assert page.status_code == 200
    assert "<del>500</del>" in page.text
    assert "<ins>1000</ins>" in page.text
    assert "<ins>4</ins>" in page.text
    assert "topic/orders" in page.text
    assert "of keys" in page.text
    assert "500" in person.get("/topics/orders/configs").text


def test_a_file_can_be_uploaded(kafka: EmbeddedBroker, person: Visitor) -> None:
    kafka.create_topic("orders", partitions=4, configs={"retention.ms": "1000"})
    page = person.post("/plan", data={"csrf": person.token("/plan")}, files={"file": ("state.yaml", STATE)})
    assert "No changes" in page.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Paste a declared state"),
        ("topics: [", "line"),
        ("nothing: {}", "nothing"),
        ("topics: {<script>: 7}", "line 1"),
        ("[" * 400_000, "nested too deeply"),
        ("- " * 200_000, "nested too deeply"),
        ("x" * 600_000, "at most"),
    ],
)
def test_an_invalid_state_is_reported_with_its_line(person: Visitor, text: str, message: str) -> None:
    data = {"csrf": person.token("/plan"), "text": text}
    page = person.post("/plan", data=data, files={"file": b""})  # multipart, as browsers send it
    assert page.status_code == 400
    assert message in page.text
    assert "<script>:" not in page.text


def test_secrets_of_the_consoles_host_are_not_read(person: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIDDEN_WORD", "do-not-tell")
    for tp in ("env: HIDDEN_WORD", "file: /etc/passwd"):
        state = f"users: {{alice: {{SCRAM-SHA-256: {{password: {{{tp}}}}}}}}}"
        page = person.submit("/plan", text=state)
        assert "reads no secrets" in page.text
        assert "do-not-tell" not in page.text
        assert "root:" not in page.text


def test_read_only_consoles_offer_plans(kafka: EmbeddedBroker) -> None:
    with visiting(kafka.bootstrap, read_only=True) as person:
        assert person.submit("/plan", text=STATE).status_code == 200
