"""A misspelled option is an error, because it would silently have no effect."""

import re
from pathlib import Path

import pytest

from barnabas.reading.option_names import OPTION_NAMES, check_option_names
from barnabas.reading.option_values import OptionError

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "spark.md"


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("startingoffset", "startingOffsets"),
        ("failondatalos", "failOnDataLoss"),
        ("include.headers", "includeHeaders"),
        ("topics", "topic"),
        ("kafka.bootstrap.server", "kafka.bootstrap.servers"),
        ("kafka.sasl.mechanisms", "kafka.sasl.mechanism"),
    ],
)
def test_a_name_that_is_almost_right_is_an_error_with_the_right_one(name: str, right: str) -> None:
    with pytest.raises(OptionError, match=f"^unknown option '{name}': did you mean {right}\\?$"):
        check_option_names(["subscribe", name])


@pytest.mark.parametrize(
    "name",
    ["path", "checkpointlocation", "queryname", "kafka.socket.timeout.ms", "kafka.acme.setting", "owner", ""],
)
def test_a_name_that_is_like_no_other_is_ignored(name: str) -> None:
    check_option_names([name])


def test_every_option_and_every_client_property_is_right() -> None:
    check_option_names([name.lower() for name in OPTION_NAMES])
    check_option_names(
        ["kafka.sasl.jaas.config", "kafka.max.partition.fetch.bytes", "kafka.transaction.timeout.ms"]
    )


def test_every_option_in_the_guide_is_known() -> None:
    tables = re.findall(r"^\| option \|.*\n\|[-|]+\n((?:\|.*\n)+)", GUIDE.read_text(), flags=re.MULTILINE)
    cells = [row.split("|")[1] for table in tables if "kafka." in table for row in table.splitlines()]
    documented = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    assert {"startingOffsets", "sinkName"} <= documented
    assert {name for name in documented if not name.startswith("kafka.")} <= set(OPTION_NAMES)
