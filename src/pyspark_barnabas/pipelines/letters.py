"""Dead letters of a flow, as records."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pyspark_barnabas.decoding.dead_letters import letter_headers
from pyspark_barnabas.pipelines.formats import row_json

_POSITION = ("topic", "partition", "offset", "timestamp")


def dead_letters(checked: DataFrame, flow: str) -> DataFrame:
    """Return records for rows with the action dead_letter.

    A record that could not be decoded keeps its key, value and headers; the value of a row that violated an
    expectation is its JSON, because SQL may have made it of many records.
    """
    row = row_json().cast("binary")
    position = {name: f.col(f"letter.{name}") for name in _POSITION}
    headers = letter_headers(f.col("reason"), flow, position, f.col("letter.headers"))
    value = f.when(f.col("letter").isNotNull(), f.col("letter.value")).otherwise(row)
    return checked.where("action = 'dead_letter'").select(
        f.col("letter.key").alias("key"), value.alias("value"), headers.alias("headers")
    )
