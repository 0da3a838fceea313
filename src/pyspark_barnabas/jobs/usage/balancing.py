"""Which replicas to move so that brokers and their log directories have like loads: as few moves as do much. No IO."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from barnabas.base.ids import TopicPartition

#: Moves that gain less than this share of a home's mean load are not worth their copying.
_GAIN_MIN = 0.02
MOVES_MAX = 50


class Home(NamedTuple):
    """Where a replica can be."""

    broker: int
    directory: str


class Move(NamedTuple):
    """A replica that is to go elsewhere."""

    place: TopicPartition
    source: Home
    target: Home
    size_bytes: int


class Balance(NamedTuple):
    """Moves, the share of all load that each home has before and after, and where every moved partition is then."""

    moves: tuple[Move, ...]
    before: Mapping[Home, float]
    after: Mapping[Home, float]
    layout: Mapping[TopicPartition, tuple[Home, ...]]  #: of the partitions that move, preferred leader first

    def to_json(self) -> str:
        """The file that `kafka-reassign-partitions --reassignment-json-file` takes."""
        homes = {*self.before, *self.after}
        several = len({home.broker for home in homes}) < len(homes)
        moved = {(move.place, move.target) for move in self.moves}
        partitions = [
            {
                "topic": place.topic,
                "partition": place.partition,
                "replicas": [home.broker for home in layout],
                "log_dirs": [
                    home.directory if several and (place, home) in moved else "any" for home in layout
                ],
            }
            for place, layout in sorted(self.layout.items())
        ]
        lines = ",\n  ".join(map(json.dumps, partitions))
        return f'{{"version": 1, "partitions": [\n  {lines}\n]}}\n'


def loads_of(
    sizes: Mapping[TopicPartition, int], recent: Mapping[TopicPartition, int]
) -> dict[TopicPartition, float]:
    """What a replica weighs: half its share of all bytes, half its share of what was lately written."""
    total, lately = sum(sizes.values()) or 1, sum(recent.values())
    return {
        place: (size / total + recent.get(place, 0) / lately) / 2 if lately else size / total
        for place, size in sizes.items()
    }


def balanced(
    layout: Mapping[TopicPartition, Sequence[Home]],
    loads: Mapping[TopicPartition, float],
    sizes: Mapping[TopicPartition, int],
    homes: Collection[Home],
) -> Balance:
    """From the fullest home to the emptiest, one replica at a time, the one that fits the difference best.

    Two replicas of a partition never come to one broker, and the order of replicas stays, so that of leaders does.
    """
    now = {place: list(each) for place, each in layout.items()}
    load = dict.fromkeys(sorted(homes), 0.0)
    for place, its in now.items():
        for home in its:
            load[home] = load.get(home, 0.0) + loads.get(place, 0.0)
    before = _shares(load)
    moves: list[Move] = []
    settled: set[TopicPartition] = set()
    while len(moves) < MOVES_MAX:
        best = _best(now, load, loads, settled)
        if best is None:
            break
        place, source, target = best
        now[place][now[place].index(source)] = target
        load[source] -= loads[place]
        load[target] += loads[place]
        settled.add(place)
        moves.append(Move(place, source, target, sizes.get(place, 0)))
    after = {move.place: tuple(now[move.place]) for move in moves}
    return Balance(tuple(moves), before, _shares(load), after)


def _best(
    now: Mapping[TopicPartition, list[Home]],
    load: Mapping[Home, float],
    loads: Mapping[TopicPartition, float],
    settled: Collection[TopicPartition],
) -> tuple[TopicPartition, Home, Home] | None:
    ordered = sorted(load, key=lambda home: (-load[home], home))
    worth = _GAIN_MIN * sum(load.values()) / max(len(load), 1)
    for source in ordered:
        for target in reversed(ordered):
            gap = load[source] - load[target]
            fitting = [
                place
                for place, its in sorted(now.items())
                if place not in settled
                and source in its
                and min(loads.get(place, 0.0), gap - loads.get(place, 0.0)) > worth
                and all(home == source or home.broker != target.broker for home in its)
            ]
            if fitting:
                return min(fitting, key=lambda place: abs(loads[place] - gap / 2)), source, target
    return None


def _shares(load: Mapping[Home, float]) -> dict[Home, float]:
    total = sum(load.values()) or 1.0
    return {home: each / total for home, each in load.items()}
