import pytest

from barnabas.cli.support.failures import CommandError
from barnabas.cli.support.partitions import PartitionArg, parse_partition, parse_reassignment


def test_an_argument_is_a_partition_or_a_whole_topic() -> None:
    assert parse_partition("a.b:12") == PartitionArg("a.b", 12)
    assert parse_partition("a") == PartitionArg("a", None)


def test_a_reassignment_names_its_brokers_in_order() -> None:
    assert parse_reassignment("a:0=3, 1") == (PartitionArg("a", 0), [3, 1])
    assert parse_reassignment("a=2") == (PartitionArg("a", None), [2])


@pytest.mark.parametrize("text", ["a:", "a:b", "a:-1"])
def test_a_partition_is_a_number(text: str) -> None:
    with pytest.raises(CommandError, match="the partition must be a number"):
        parse_partition(text)


@pytest.mark.parametrize("text", ["a:0", "a:0=", "a:0=1,", "a:0=x", "a:0=-1"])
def test_a_reassignment_needs_brokers(text: str) -> None:
    with pytest.raises(CommandError, match="must be a partition and its brokers"):
        parse_reassignment(text)
