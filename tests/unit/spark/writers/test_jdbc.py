"""Decisions of the database sink, without a database."""

import pytest

from pyspark_barnabas.failures import FlowError
from pyspark_barnabas.writers.database import Database
from pyspark_barnabas.writers.jdbc import (
    attempt_name,
    decide_attempts,
    fitting,
    staging_statements,
)

DATABASE = Database("jdbc:x:y;create=true", "t", None, None, None, {})


def test_columns_are_matched_by_name_ignoring_case() -> None:
    assert fitting(["id", "At"], ["AT", "ID", "more"], DATABASE) == ["ID", "AT"]
    assert fitting(["id"], ["ID", "id"], DATABASE) == ["id"]


@pytest.mark.parametrize(
    ("there", "says"),
    [
        (["a", "b"], "jdbc t at jdbc:x:y has no column id; the table has a, b"),
        (["Id", "ID"], "jdbc t at jdbc:x:y has more than one column id"),
    ],
)
def test_a_column_that_the_table_does_not_have_exactly_once_is_reported(there: list[str], says: str) -> None:
    with pytest.raises(FlowError, match=says):
        fitting(["id"], there, DATABASE)


def test_the_last_attempt_of_each_task_counts() -> None:
    found = [
        attempt_name("this", 0, 3),
        attempt_name("this", 1, 4),
        attempt_name("this", 0, 12),
        attempt_name("other", 2, 99),
    ]
    assert decide_attempts(found, "this") == ["this.0.12", "this.1.4"]
    assert decide_attempts([], "this") == []


@pytest.mark.parametrize(
    ("url", "made"),
    [
        ("jdbc:derby:x", 'CREATE TABLE s.stage AS (SELECT "a", "B" FROM s.t) WITH NO DATA'),
        ("jdbc:postgresql://x/y", 'CREATE TABLE s.stage AS (SELECT "a", "B" FROM s.t) WITH NO DATA'),
        ("jdbc:sqlite:x", 'CREATE TABLE s.stage AS SELECT "a", "B" FROM s.t WHERE 1 = 0'),
    ],
)
def test_a_staging_table_has_the_tables_columns_in_each_dialect(url: str, made: str) -> None:
    first, second = staging_statements(url, "s.t", "s.stage", ['"a"', '"B"'])
    assert first == made
    assert second == "ALTER TABLE s.stage ADD barnabas_attempt VARCHAR(100)"
