"""Histories: what is there at first, and strategies for what is then done to it."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from barnabas.api.registry import ApiSpec
from barnabas.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.schema import Message
from differential.batches import Batch
from differential.symbols import Name
from differential.values import messages

Step = tuple[Message, int]

#: Requests per history; the first few are always the same.
STEPS_MAX = 25

#: How often an API is drawn, where not once.
WEIGHTS = {0: 8, 1: 8, 2: 3, 20: 1, 19: 2, 21: 2, 61: 2}


def topic(name: str, partitions: int = 1, **configs: str) -> CreatableTopic:
    """Build a topic to create; in the names of configs `_` stands for a dot."""
    given = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    symbol: Any = Name(name)
    return CreatableTopic(name=symbol, num_partitions=partitions, replication_factor=1, configs=given)


def create(*topics: CreatableTopic) -> Step:
    return CreateTopicsRequest(topics=list(topics), timeout_ms=10_000), 7


def produce(name: str, *batches: Batch | None, index: int = 0) -> tuple[Step, ...]:
    """Build one request for each batch."""
    symbol: Any = Name(name)
    data: list[Any] = list(batches)
    return tuple(
        (
            ProduceRequest(
                acks=-1,
                timeout_ms=10_000,
                topic_data=[
                    TopicProduceData(
                        name=symbol, partition_data=[PartitionProduceData(index=index, records=batch)]
                    )
                ],
            ),
            9,
        )
        for batch in data
    )


def new_producer() -> Step:
    return InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 4


def beginning() -> list[Step]:
    """Create a few topics of different kinds and two producers, and write some records."""
    return [
        create(
            topic("a", 2),
            topic("stamped", message_timestamp_type="LogAppendTime"),
            topic("compacted", cleanup_policy="compact"),
        ),
        new_producer(),
        new_producer(),
        *produce("a", Batch(), Batch(records=((1000, b"k", b"v"), (2000, None, b"w"))), Batch(producer=0)),
    ]


def steps(specs: list[ApiSpec]) -> SearchStrategy[Step]:
    """Generate one request of any API and version."""
    weighted = [spec for spec in specs for _ in range(WEIGHTS.get(spec.api_key, 1))]
    pairs = st.sampled_from(weighted).flatmap(
        lambda spec: st.tuples(st.just(spec), st.integers(spec.versions.first, spec.versions.last))
    )
    return pairs.flatmap(lambda pair: st.tuples(messages(*pair), st.just(pair[1])))


def histories(specs: list[ApiSpec]) -> SearchStrategy[list[Step]]:
    """Generate sequences of requests."""
    return st.lists(steps(specs), min_size=1, max_size=STEPS_MAX)
