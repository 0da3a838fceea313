"""Starting and ending offsets, from a fake offset reader."""

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.reading.data_loss import DataLossError
from barnabas.reading.offset_range_limits import ending_offsets, starting_offsets
from barnabas.reading.option_values import OptionError
from barnabas.reading.planning import plan_ranges
from pyspark_barnabas.source.options import SourceOptions, batch_options
from support.fake_logs import FakeLogs

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


def options(**given: str) -> SourceOptions:
    return batch_options({"kafka.bootstrap.servers": "a:1", "subscribe": "orders", **given})


def logs() -> FakeLogs:
    listed = FakeLogs({A: 10, B: 20})
    listed.starts[B] = 5
    return listed


def starts(**given: str) -> dict[TopicPartition, int]:
    return starting_offsets(logs(), [A, B], options(**given))


def ends(**given: str) -> dict[TopicPartition, int]:
    return ending_offsets(logs(), [A, B], options(**given))


def test_a_batch_reads_everything_by_default() -> None:
    assert starts() == {A: 0, B: 5}
    assert ends() == {A: 10, B: 20}


def test_explicit_offsets_are_used_and_markers_are_looked_up() -> None:
    assert starts(startingOffsets='{"orders": {"0": 3, "1": -2}}') == {A: 3, B: 5}
    assert ends(endingOffsets='{"orders": {"0": -1, "1": 7}}') == {A: 10, B: 7}


def test_timestamps_are_looked_up() -> None:
    assert starts(startingTimestamp="7") == {A: 7, B: 7}
    assert ends(endingOffsetsByTimestamp='{"orders": {"0": 8, "1": 9}}') == {A: 8, B: 9}


def test_an_ending_timestamp_after_all_records_is_the_end() -> None:
    assert ends(endingTimestamp="15") == {A: 10, B: 15}


def test_a_starting_timestamp_after_all_records_is_an_error() -> None:
    with pytest.raises(OptionError, match="orders-0 is as late as its starting time, 15"):
        starts(startingTimestamp="15")
    with pytest.raises(OptionError, match="orders-1 is as late as its starting time, 99"):
        starts(startingOffsetsByTimestamp='{"orders": {"0": 0, "1": 99}}')


def test_a_starting_timestamp_after_all_records_can_be_the_end() -> None:
    given = {"startingOffsetsByTimestampStrategy": "latest"}
    assert starts(startingTimestamp="15", **given) == {A: 10, B: 15}


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"startingOffsets": '{"orders": {"0": 1}}'}, "startingOffsets.*lacks orders-1"),
        ({"startingOffsets": '{"orders": {"0": 1, "1": 1, "2": 1}}'}, "orders-2 is not selected"),
        ({"startingOffsetsByTimestamp": '{"orders": {"0": 1}}'}, "startingOffsetsByTimestamp.*orders-1"),
    ],
)
def test_offsets_must_name_exactly_the_partitions(given: dict[str, str], named: str) -> None:
    with pytest.raises(OptionError, match=named):
        starts(**given)


def ranges(**given: str) -> list[tuple[int, int]]:
    return [(low, high) for _, low, high in plan_ranges(logs(), [A, B], options(**given))]


def test_a_start_behind_the_ending_time_is_no_data_loss() -> None:
    """As for a job that continues where the last run ended, up to a time."""
    given = {"startingOffsets": '{"orders": {"0": 8, "1": 9}}', "endingTimestamp": "6"}
    assert ranges(**given) == [(8, 6), (9, 6)]
    by_partition = '{"orders": {"0": 9, "1": 3}}'
    assert ranges(startingOffsets=given["startingOffsets"], endingOffsetsByTimestamp=by_partition) == [
        (8, 9),
        (9, 5),
    ]


def test_a_start_behind_the_end_of_the_log_is_data_loss_whatever_the_end_is() -> None:
    offsets = '{"orders": {"0": 11, "1": 9}}'
    for end in ({}, {"endingTimestamp": "6"}):
        with pytest.raises(DataLossError, match="before the start at 11"):
            ranges(startingOffsets=offsets, **end)
    assert ranges(startingOffsets=offsets, failOnDataLoss="false") == [(10, 10), (9, 20)]
