"""Which in-sync replicas still have everything that was acknowledged, after brokers have lost power.

A record that was acknowledged with acks=all is on all in-sync replicas. A power failure may take it from one of them.
As long as another in-sync replica has it, it must not be lost. When the last one has lost power, what was acknowledged
before may be lost.
"""

from collections.abc import Callable

from barnabas.base.ids import TopicPartition
from barnabas.metadata.brokers import BROKERS
from barnabas.metadata.store import Commit
from barnabas.metadata.topics import PARTITION_STATES, TOPICS, PartitionRegistration, TopicImage
from barnabas.metadata.trash import TRASHED_TOPICS

#: Topic id and index.
_Key = tuple[bytes, int]


class Survivors:
    """Follows the commits of the store."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._topics: dict[bytes, TopicImage] = {}
        self._trashed: set[bytes] = set()  #: ids of the topics in the trash, which may return
        self._isr: dict[_Key, tuple[int, ...]] = {}
        self._intact: dict[_Key, set[int]] = {}
        self._powerless: set[int] = set()  #: brokers that have not registered since they lost power
        self._epochs: dict[int, int] = {}  #: broker epochs
        #: partitions of which a replica has damaged records, which nothing can tell before they are read
        self.damaged: dict[TopicPartition, None] = {}
        self._lost_s: dict[tuple[str, int], float] = {}  #: when the last survivor of a partition was lost

    def may_lose(self, broker_id: int) -> bool:
        """Whether every partition has a survivor without this broker."""
        return all(
            not intact or intact - {broker_id} or len(self._topics[topic_id].assignments[index]) == 1
            for (topic_id, index), intact in self._intact.items()
            if topic_id in self._topics
        )

    def lose(self, broker_id: int) -> None:
        """A broker has lost power."""
        self._powerless.add(broker_id)
        for key, intact in self._intact.items():
            intact.discard(broker_id)
            self._note(key)

    def lost_before_s(self, topic: str, index: int | None = None) -> float:
        """What was acknowledged before may be lost, in a partition or in any of a topic; -1 if nothing may."""
        return max(
            (
                at_s
                for (name, number), at_s in self._lost_s.items()
                if name == topic and index in (None, number)
            ),
            default=-1.0,
        )

    def follow(self, commit: Commit) -> None:
        """Apply a commit."""
        for change in commit.changes:
            record_type, _, key = change.key.partition("/")
            if record_type == TRASHED_TOPICS.name and change.value is not None:
                self._trashed.add(bytes.fromhex(key))
        for change in commit.changes:
            record_type, _, key = change.key.partition("/")
            if change.value is None:
                self._remove_topic(record_type, key)
            elif record_type == TOPICS.name:
                topic = TOPICS.decode(change.value)
                self._trashed.discard(topic.topic_id)
                self._topics[topic.topic_id] = topic
                for index, replicas in enumerate(topic.assignments):
                    self._isr.setdefault((topic.topic_id, index), replicas)
                    self._intact.setdefault((topic.topic_id, index), set(replicas))
            elif record_type == PARTITION_STATES.name:
                topic_id, _, index = key.partition("/")
                self._change((bytes.fromhex(topic_id), int(index)), PARTITION_STATES.decode(change.value))
        self._follow_registrations(commit)

    def _remove_topic(self, record_type: str, name: str) -> None:
        gone: list[bytes] = []
        if record_type == TOPICS.name:
            named = [topic_id for topic_id, topic in self._topics.items() if topic.name == name]
            gone = [topic_id for topic_id in named if topic_id not in self._trashed]
        elif record_type == TRASHED_TOPICS.name and bytes.fromhex(name) in self._trashed:
            gone = [bytes.fromhex(name)]
        for topic_id in gone:
            self._trashed.discard(topic_id)
            self._topics.pop(topic_id, None)
        for key in [key for key in self._intact if key[0] in gone]:
            del self._intact[key], self._isr[key]

    def _change(self, key: _Key, state: PartitionRegistration) -> None:
        before, intact = self._isr.get(key, ()), self._intact.setdefault(key, set())
        intact &= {*state.isr, *state.elr}  # eligible leader replicas have what is below the high watermark
        if intact:  # a broker that joins has what the survivors have
            intact |= {each for each in state.isr if each not in before} - self._powerless
        self._isr[key] = state.isr
        self._note(key)

    def _follow_registrations(self, commit: Commit) -> None:
        for change in commit.changes:
            if change.key.startswith(BROKERS.key("")) and change.value is not None:
                broker = BROKERS.decode(change.value)
                if broker.epoch != self._epochs.get(broker.broker_id):
                    # it has registered, and left the in-sync replicas if it could
                    self._epochs[broker.broker_id] = broker.epoch
                    self._powerless.discard(broker.broker_id)
        for key, intact in self._intact.items():
            if not intact:
                self._note(key)
                intact |= set(self._isr[key]) - self._powerless

    def _note(self, key: _Key) -> None:
        if not self._intact[key] and key[0] in self._topics:
            self._lost_s[self._topics[key[0]].name, key[1]] = self._now_s()
