"""Choose a few replica moves that balance the load of brokers and their log directories. No IO."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from barnabas.base.ids import TopicPartition

#: Moves that gain less than this share of the mean load of a log directory are not worth the copy.
_GAIN_MIN = 0.02
MOVES_MAX = 50


class Home(NamedTuple):
    """A log directory of a broker."""

    broker: int
    directory: str


class Move(NamedTuple):
    """A replica to move."""

    tp: TopicPartition
    source: Home
    target: Home
    size_bytes: int


class Balance(NamedTuple):
    """Moves, the share of the load of each home before and after, and the new replicas of every moved partition."""

    moves: tuple[Move, ...]
    before: Mapping[Home, float]
    after: Mapping[Home, float]
    layout: Mapping[TopicPartition, tuple[Home, ...]]  #: of the partitions that move, preferred leader first

    def to_json(self) -> str:
        """Return the file for `kafka-reassign-partitions --reassignment-json-file`."""
        homes = {*self.before, *self.after}
        has_several_directories = len({home.broker for home in homes}) < len(homes)
        targets = {(move.tp, move.target) for move in self.moves}
        partitions = [
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "replicas": [home.broker for home in layout],
                "log_dirs": [
                    home.directory if has_several_directories and (tp, home) in targets else "any"
                    for home in layout
                ],
            }
            for tp, layout in sorted(self.layout.items())
        ]
        lines = ",\n  ".join(map(json.dumps, partitions))
        return f'{{"version": 1, "partitions": [\n  {lines}\n]}}\n'


def loads_of(
    sizes: Mapping[TopicPartition, int], recent: Mapping[TopicPartition, int]
) -> dict[TopicPartition, float]:
    """Return each replica's load: half its share of all bytes, half its share of recently written bytes."""
    total, recent_total = sum(sizes.values()) or 1, sum(recent.values())
    return {
        tp: (size / total + recent.get(tp, 0) / recent_total) / 2 if recent_total else size / total
        for tp, size in sizes.items()
    }


def balanced(
    layout: Mapping[TopicPartition, Sequence[Home]],
    loads: Mapping[TopicPartition, float],
    sizes: Mapping[TopicPartition, int],
    homes: Collection[Home],
) -> Balance:
    """Move replicas from the fullest home to the emptiest, each time the one that fits the difference best.

    A broker never gets two replicas of a partition, and the order of replicas, and so the preferred leaders, is kept.
    """
    current = {tp: list(replicas) for tp, replicas in layout.items()}
    load = dict.fromkeys(sorted(homes), 0.0)
    for tp, replicas in current.items():
        for home in replicas:
            load[home] = load.get(home, 0.0) + loads.get(tp, 0.0)
    before = _shares(load)
    moves: list[Move] = []
    moved: set[TopicPartition] = set()
    while len(moves) < MOVES_MAX:
        best = _best(current, load, loads, moved)
        if best is None:
            break
        tp, source, target = best
        current[tp][current[tp].index(source)] = target
        load[source] -= loads[tp]
        load[target] += loads[tp]
        moved.add(tp)
        moves.append(Move(tp, source, target, sizes.get(tp, 0)))
    after = {move.tp: tuple(current[move.tp]) for move in moves}
    return Balance(tuple(moves), before, _shares(load), after)


def _best(
    current: Mapping[TopicPartition, list[Home]],
    load: Mapping[Home, float],
    loads: Mapping[TopicPartition, float],
    moved: Collection[TopicPartition],
) -> tuple[TopicPartition, Home, Home] | None:
    ordered = sorted(load, key=lambda home: (-load[home], home))
    gain_min = _GAIN_MIN * sum(load.values()) / max(len(load), 1)
    for source in ordered:
        for target in reversed(ordered):
            gap = load[source] - load[target]
            fitting = [
                tp
                for tp, replicas in sorted(current.items())
                if tp not in moved
                and source in replicas
                and min(loads.get(tp, 0.0), gap - loads.get(tp, 0.0)) > gain_min
                and all(home == source or home.broker != target.broker for home in replicas)
            ]
            if fitting:
                return min(fitting, key=lambda tp: abs(loads[tp] - gap / 2)), source, target
    return None


def _shares(load: Mapping[Home, float]) -> dict[Home, float]:
    total = sum(load.values()) or 1.0
    return {home: home_load / total for home, home_load in load.items()}
