"""Moves that balance brokers and directories."""

import json

from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.ids import TopicPartition
from barnabas.reports.usage.balancing import MOVES_MAX, Home, balanced, loads_of

BROKERS = [Home(number, "/data") for number in range(3)]


def tp(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


def test_a_full_broker_moves_the_best_fitting_replicas_to_an_empty_one() -> None:
    sizes = {tp(0): 600, tp(1): 300, tp(2): 300}
    layout = {each: [BROKERS[0]] for each in sizes}
    found = balanced(layout, loads_of(sizes, {}), sizes, BROKERS[:2])
    assert [(move.tp, move.source, move.target, move.size_bytes) for move in found.moves] == [
        (tp(0), BROKERS[0], BROKERS[1], 600)
    ]
    assert list(found.before.values()) == [1.0, 0.0]
    assert list(found.after.values()) == [0.5, 0.5]


def test_the_file_has_the_format_of_kafka_reassign_partitions() -> None:
    sizes = {tp(0): 500, tp(1): 500}
    layout = {each: [BROKERS[0], BROKERS[1]] for each in sizes}
    found = json.loads(balanced(layout, loads_of(sizes, {}), sizes, BROKERS).to_json())
    assert found == {
        "version": 1,
        "partitions": [
            {"topic": "orders", "partition": 0, "replicas": [2, 1], "log_dirs": ["any", "any"]},
        ],
    }


def test_directories_of_one_broker_are_balanced_by_name() -> None:
    homes = [Home(1, "/a"), Home(1, "/b")]
    sizes = {tp(0): 500, tp(1): 500}
    found = balanced({each: [homes[0]] for each in sizes}, loads_of(sizes, {}), sizes, homes)
    [moved] = json.loads(found.to_json())["partitions"]
    assert (moved["replicas"], moved["log_dirs"]) == ([1], ["/b"])


def test_recent_writes_weigh_as_much_as_stored_bytes() -> None:
    loads = loads_of({tp(0): 900, tp(1): 100}, {tp(1): 50})
    assert loads == {tp(0): 0.45, tp(1): 0.55}


def test_a_balanced_cluster_has_no_moves() -> None:
    sizes = {tp(0): 500, tp(1): 501, tp(2): 499}
    layout = {tp(number): [home] for number, home in enumerate(BROKERS)}
    assert balanced(layout, loads_of(sizes, {}), sizes, BROKERS).moves == ()
    assert balanced({}, {}, {}, BROKERS).moves == ()


@st.composite
def clusters(
    draw: st.DrawFn,
) -> tuple[dict[TopicPartition, list[Home]], dict[TopicPartition, int], list[Home]]:
    brokers = draw(st.integers(1, 5))
    homes = [
        Home(broker, path) for broker in range(brokers) for path in ("/a", "/b")[: draw(st.integers(1, 2))]
    ]
    layout, sizes = {}, {}
    for number in range(draw(st.integers(0, 12))):
        its = draw(st.permutations(range(brokers)))[: draw(st.integers(1, brokers))]
        layout[tp(number)] = [draw(st.sampled_from([h for h in homes if h.broker == b])) for b in its]
        sizes[tp(number)] = draw(st.integers(0, 1_000))
    return layout, sizes, homes


@given(clusters())
def test_balancing_never_worsens_the_balance_or_breaks_a_partition(
    cluster: tuple[dict[TopicPartition, list[Home]], dict[TopicPartition, int], list[Home]],
) -> None:
    layout, sizes, homes = cluster
    found = balanced(layout, loads_of(sizes, {}), sizes, homes)
    assert max(found.after.values()) <= max(found.before.values()) + 1e-9
    assert len(found.moves) <= MOVES_MAX
    assert len({move.tp for move in found.moves}) == len(found.moves), "none moves twice"
    for each, its in found.layout.items():
        assert len({home.broker for home in its}) == len(layout[each])
        assert sum(one != other for one, other in zip(its, layout[each], strict=True)) == 1
