"""The options of source and sink by name."""

import re
from pathlib import Path

import pytest

from barnabas.reading.option_names import check_option_names
from barnabas.reading.option_values import OptionError
from pyspark_barnabas.sink import options as sink
from pyspark_barnabas.source import options as source

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "spark.md"
TOPIC = {"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "orders"}


def documented(table: int) -> set[str]:
    """Return the names in one of the guide's tables of options, without client properties."""
    tables = re.findall(r"^\| option \|.*\n\|[-|]+\n((?:\|.*\n)+)", GUIDE.read_text(), flags=re.MULTILINE)
    cells = [row.split("|")[1] for row in tables[table].splitlines()]
    names = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    return {name for name in names if not name.startswith("kafka.")}


def test_the_options_in_the_guide_are_those_of_source_and_sink() -> None:
    assert documented(0) == set(source.OPTION_NAMES)
    assert documented(1) <= set(sink.OPTION_NAMES) <= documented(0) | documented(1)


def test_source_and_sink_accept_each_others_options() -> None:
    """A job may keep the options of both in one dictionary."""
    check_option_names([name.lower() for name in source.OPTION_NAMES], sink.OPTION_NAMES)
    check_option_names([name.lower() for name in sink.OPTION_NAMES], source.OPTION_NAMES)


def test_a_misspelled_option_of_the_source_is_an_error() -> None:
    for parse in (source.batch_options, source.stream_options):
        with pytest.raises(OptionError, match="'minpartition': did you mean minPartitions"):
            parse({**TOPIC, "minPartition": "3"})


def test_a_misspelled_option_of_the_sink_is_an_error() -> None:
    for parse in (sink.batch_options, sink.stream_options):
        with pytest.raises(OptionError, match="'topics': did you mean topic"):
            parse({**TOPIC, "topics": "orders"})
