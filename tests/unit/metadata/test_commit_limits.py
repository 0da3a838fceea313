from functools import partial

from barnabas.metadata.broker_lifecycle import decide_elections
from barnabas.metadata.brokers import BROKERS
from barnabas.metadata.election_rules import ElectionRules
from barnabas.metadata.features import ELR_VERSION, FINALIZED_FEATURES
from barnabas.metadata.topics import NO_LEADER, TOPICS, TopicImage
from barnabas.metadata.writer import MetadataWriter
from support.images import broker
from support.loop import on_loop
from support.memory_store import MemoryStore

#: etcd's default, without the operation that writes the id of the commit.
CHANGES_MAX = 127


@on_loop
async def test_elections_in_a_cluster_of_many_brokers_fit_into_the_commits_of_the_store() -> None:
    store = MemoryStore(changes_max=CHANGES_MAX)
    registered = [BROKERS.put(str(each), broker(each, fenced=each == 1)) for each in range(1, 82)]
    topics = [
        TopicImage(f"t{each}", each.to_bytes(16), ((1, 2 * each, 2 * each + 1),)) for each in range(1, 41)
    ]
    store.write({}, (*registered[:60], FINALIZED_FEATURES.put(ELR_VERSION, 1)))
    store.write({}, (*registered[60:], *(TOPICS.put(topic.name, topic) for topic in topics)))
    writer = MetadataWriter(store)
    await writer.start()
    rules = ElectionRules(
        min_isr=lambda topic: 3
    )  # what becomes eligible depends on the topic's configs, too
    while await writer.write(partial(decide_elections, rules=rules, limit=writer.partitions_max)):
        pass
    states = [writer.image.partition(topic, 0) for topic in topics]
    assert {(state.leader not in (1, NO_LEADER), state.elr) for state in states} == {(True, (1,))}
    await writer.stop()
