"""Spread replicas and preferred leaders evenly over brokers, with few copies."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from barnabas.base.ids import TopicPartition
from barnabas.base.plurals import plural

#: (partition, from a broker, to a broker) -> whether it was possible
_Move = Callable[[TopicPartition, int, int], bool]


def plan_reassignments(
    replicas: Mapping[TopicPartition, Sequence[int]], racks: Mapping[int, str | None]
) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the new replicas of the partitions that have to change, the preferred leader first.

    Replicas leave all brokers that are not in `racks`. The replicas of a partition are in as many racks as possible, as
    far as every broker has one. Then each topic, and all of them together, are spread evenly over the brokers.

    :param replicas: The replicas of all partitions.
    :param racks: The brokers to spread the replicas over, and their racks.
    :raises ValueError: If a partition has more replicas than there are brokers.
    """
    factor = max(map(len, replicas.values()), default=0)
    if factor > len(racks):
        topics = sorted({tp.topic for tp, brokers in replicas.items() if len(brokers) > len(racks)})
        raise ValueError(
            f"{plural(len(racks), 'broker')} cannot have {factor} replicas of each partition of {', '.join(topics)}"
        )
    plan = _Plan(replicas, racks)
    plan.leave_other_brokers()
    plan.spread_over_racks()
    plan.balance_replicas()
    plan.balance_leaders()
    return {tp: tuple(after) for tp, after in plan.replicas.items() if after != list(replicas[tp])}


class _Load:
    """Which partitions each broker has, as a replica or as the preferred leader."""

    def __init__(self) -> None:
        #: broker -> topic -> partitions
        self._held: defaultdict[int, defaultdict[str, dict[TopicPartition, None]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        self._totals: Counter[int] = Counter()
        self._topics: dict[str, None] = {}

    def add(self, tp: TopicPartition, broker: int) -> None:
        self._held[broker][tp.topic][tp] = None
        self._totals[broker] += 1
        self._topics[tp.topic] = None

    def remove(self, tp: TopicPartition, broker: int) -> None:
        del self._held[broker][tp.topic][tp]
        self._totals[broker] -= 1

    def count(self, topic: str, broker: int) -> int:
        return len(self._held[broker][topic])

    def rank(self, topic: str, broker: int) -> tuple[int, int, int]:
        """Sort brokers by how many partitions of the topic they have, then by how many of all topics."""
        return self.count(topic, broker), self._totals[broker], broker

    def even_out(self, brokers: Sequence[int], move: _Move) -> None:
        """Move partitions from brokers with more to brokers with fewer: first of each topic, then of all topics.

        A move for all topics leaves the topic as even as it is. It can make another move of a topic possible, which
        racks have prevented.
        """
        is_even = False
        while not is_even:
            for topic in sorted(self._topics):
                while self._move_one_of(topic, brokers, move):
                    pass
            is_even = True
            while self._move_one(brokers, move):
                is_even = False

    def _move_one_of(self, topic: str, brokers: Sequence[int], move: _Move) -> bool:
        """Move one partition of a topic; return whether that was possible."""
        ranked = sorted(brokers, key=lambda broker: self.rank(topic, broker))
        counts = {broker: self.count(topic, broker) for broker in brokers}
        return any(
            move(tp, source, target)
            for source, target in _pairs(ranked, counts)
            for tp in list(self._held[source][topic])
        )

    def _move_one(self, brokers: Sequence[int], move: _Move) -> bool:
        """Move one partition of any topic; return whether that was possible."""
        ranked = sorted(brokers, key=lambda broker: (self._totals[broker], broker))
        return any(
            move(tp, source, target)
            for source, target in _pairs(ranked, self._totals)
            for topic in list(self._held[source])
            if self.count(topic, source) > self.count(topic, target)
            for tp in list(self._held[source][topic])
        )


def _pairs(ranked: Sequence[int], counts: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """Yield brokers with more and with fewer partitions, between which a move helps; the most unequal ones first."""
    for source in reversed(ranked):
        for target in ranked:
            if counts[source] - counts[target] < 2:
                break
            yield source, target


class _Plan:
    """The replicas as planned so far."""

    def __init__(
        self, replicas: Mapping[TopicPartition, Sequence[int]], racks: Mapping[int, str | None]
    ) -> None:
        self.replicas = {tp: list(replicas[tp]) for tp in sorted(replicas)}
        self._brokers = sorted(racks)
        # As in Kafka, racks count only if each broker has one.
        self._racks = dict.fromkeys(racks) if None in racks.values() else racks
        self._load = _Load()
        for tp, brokers in self.replicas.items():
            for broker in brokers:
                self._load.add(tp, broker)

    def leave_other_brokers(self) -> None:
        for tp, brokers in self.replicas.items():
            for broker in [each for each in brokers if each not in self._racks]:
                self._replace(tp, broker, self._best_target(tp, brokers))

    def spread_over_racks(self) -> None:
        racks_count = len(set(self._racks.values()))
        for tp, brokers in self.replicas.items():
            while len(self._racks_of(brokers)) < min(len(brokers), racks_count):
                self._replace(tp, self._in_shared_rack(brokers), self._best_target(tp, brokers))

    def balance_replicas(self) -> None:
        self._load.even_out(self._brokers, self._move_replica)

    def balance_leaders(self) -> None:
        load = _Load()
        for tp, brokers in self.replicas.items():
            if brokers:
                load.add(tp, brokers[0])

        def move(tp: TopicPartition, source: int, target: int) -> bool:
            brokers = self.replicas[tp]
            if target not in brokers:
                return False
            position = brokers.index(target)
            brokers[0], brokers[position] = target, source
            load.remove(tp, source)
            load.add(tp, target)
            return True

        load.even_out(self._brokers, move)

    def _move_replica(self, tp: TopicPartition, source: int, target: int) -> bool:
        brokers = self.replicas[tp]
        if target in brokers:
            return False
        after = [target if broker == source else broker for broker in brokers]
        if len(self._racks_of(after)) < len(self._racks_of(brokers)):
            return False
        self._replace(tp, source, target)
        return True

    def _replace(self, tp: TopicPartition, source: int, target: int) -> None:
        brokers = self.replicas[tp]
        brokers[brokers.index(source)] = target
        self._load.remove(tp, source)
        self._load.add(tp, target)

    def _best_target(self, tp: TopicPartition, brokers: Sequence[int]) -> int:
        """Return a broker without a replica: in another rack if possible, then with few partitions."""
        taken = self._racks_of(brokers)
        candidates = (broker for broker in self._brokers if broker not in brokers)
        return min(candidates, key=lambda each: (self._racks[each] in taken, self._load.rank(tp.topic, each)))

    def _racks_of(self, brokers: Sequence[int]) -> set[str | None]:
        return {self._racks[broker] for broker in brokers if broker in self._racks}

    def _in_shared_rack(self, brokers: Sequence[int]) -> int:
        """Return the last replica that shares its rack with another one: the first is the preferred leader."""
        counts = Counter(self._racks[broker] for broker in brokers)
        return next(broker for broker in reversed(brokers) if counts[self._racks[broker]] > 1)
