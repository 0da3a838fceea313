"""Arguments of `read_topic` that need no broker, and its errors."""

import re
import subprocess
import sys
from datetime import datetime
from typing import Any

import pytest

from barnabas.arrow import read_topic
from barnabas.client.core.errors import BrokerUnreachable

NOBODY = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either topic or pattern is required"),
        ({"topic": "orders", "pattern": "o.*"}, "either topic or pattern is required"),
        ({"topic": []}, "topic is empty: a name is required"),
        ({"pattern": "("}, "a regular expression is expected"),
        ({"pattern": "o.*", "partitions": [0]}, "partitions need a single topic, not a pattern"),
        ({"topic": ["a", "b"], "partitions": [0]}, "partitions need a single topic, not 2"),
        ({"topic": "orders", "columns": []}, "a list of names is expected, of key, value, topic"),
        ({"topic": "orders", "columns": "value"}, "columns is 'value': a list of names is expected"),
        (
            {"topic": "orders", "columns": ["vlaue"]},
            "there is no column 'vlaue'; these can be read: key, value",
        ),
        ({"topic": "orders", "columns": ["key", "key"]}, "columns repeats a name: key, key"),
        (
            {"topic": "orders", "isolation_level": "serializable"},
            "read_uncommitted or read_committed is expected",
        ),
        ({"topic": "orders", "start": "first"}, "start is 'first': earliest, latest, a datetime or offsets"),
        ({"topic": "orders", "end": datetime(2026, 1, 1)}, "end is 2026-01-01 00:00:00, without a time zone"),  # noqa: DTZ001
        ({"topic": "orders", "properties": {"security.protocol": "SSH"}}, "must be one of PLAINTEXT"),
        ({"topic": "orders", "properties": {"request.timeout.ms": "1s"}}, "an integer is expected"),
        ({"topic": "orders", "bootstrap": "nowhere:port"}, "nowhere:port"),
    ],
)
def test_an_argument_that_is_not_valid_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        read_topic(**{"bootstrap": NOBODY, **arguments})


def test_a_broker_that_cannot_be_reached_is_reported_at_once() -> None:
    with pytest.raises(BrokerUnreachable, match=NOBODY):
        read_topic(NOBODY, "orders")


@pytest.mark.parametrize("package", ["pyarrow", "numpy", "numba"])
def test_a_missing_package_is_reported_with_the_command_that_helps(package: str) -> None:
    program = f"import sys; sys.modules['{package}'] = None; import barnabas.arrow"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install '.[arrow]'" in done.stderr.splitlines()[-1]
