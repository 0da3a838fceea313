"""Transactions of a confluent-kafka producer."""

from barnabas.testing import EmbeddedBroker
from support.source_rows import WAIT_S, producer


def transact(
    broker: EmbeddedBroker, topic: str, name: str, outcomes: str, *, key: bytes | None = None
) -> None:
    """Write ten records in a transaction for each letter: `c` commits, `a` aborts, `o` stays open."""
    transact_at(broker.bootstrap, topic, name, outcomes, key=key)


def transact_at(bootstrap: str, topic: str, name: str, outcomes: str, *, key: bytes | None = None) -> None:
    """Do the same at an address."""
    writer = producer(bootstrap, transactional_id=name)
    writer.init_transactions(WAIT_S)
    for outcome in outcomes:
        writer.begin_transaction()
        for number in range(10):
            writer.produce(topic, f"{name} {outcome} {number}".encode(), key=key)
        writer.flush(WAIT_S)
        if outcome == "c":
            writer.commit_transaction(WAIT_S)
        elif outcome == "a":
            writer.abort_transaction(WAIT_S)
