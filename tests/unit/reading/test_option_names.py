"""A misspelled option is an error, because it would silently have no effect."""

import pytest

from barnabas.reading.option_names import check_option_names
from barnabas.reading.option_values import OptionError
from barnabas.reading.text_options import OPTION_NAMES, batch_read_options


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("startingoffset", "startingOffsets"),
        ("failondatalos", "failOnDataLoss"),
        ("log.dirs", "logDirs"),
        ("kafka.bootstrap.server", "kafka.bootstrap.servers"),
        ("kafka.sasl.mechanisms", "kafka.sasl.mechanism"),
    ],
)
def test_a_name_that_is_almost_right_is_an_error_with_the_right_one(name: str, right: str) -> None:
    with pytest.raises(OptionError, match=f"^unknown option '{name}': did you mean {right}\\?$"):
        check_option_names(["subscribe", name], OPTION_NAMES)


@pytest.mark.parametrize(
    "name",
    ["path", "checkpointlocation", "queryname", "kafka.socket.timeout.ms", "kafka.acme.setting", "owner", ""],
)
def test_a_name_that_is_like_no_other_is_ignored(name: str) -> None:
    check_option_names([name], OPTION_NAMES)


def test_the_right_names_of_options_and_client_properties_are_accepted() -> None:
    check_option_names([name.lower() for name in OPTION_NAMES], OPTION_NAMES)
    check_option_names(["kafka.sasl.jaas.config", "kafka.max.partition.fetch.bytes"], OPTION_NAMES)


def test_the_value_of_a_misspelled_option_is_not_shown() -> None:
    options = {"kafka.bootstrap.servers": "h:1", "subscribe": "t", "kafka.sasl.jaas.confg": "password"}
    with pytest.raises(OptionError) as failure:
        batch_read_options(options)
    assert (
        str(failure.value) == "unknown option 'kafka.sasl.jaas.confg': did you mean kafka.sasl.jaas.config?"
    )
