"""Dead letters: records that could not be processed, as records of another topic, from which they can be replayed.

Key and value are those of the record. Headers say why and where: `barnabas.reason`, `.flow`, `.topic`, `.partition`,
`.offset` and `.timestamp` (milliseconds); the record's own headers follow.

To replay letters, write them with their headers to a replay topic, repaired or as they are, and let the flow read that
topic, too: `restored` gives them the position that they had first, so a row can tell where it comes from.
"""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from pyspark_barnabas.decoding.records import RECORD

_PREFIX = "barnabas."
#: Of a record's own position, with their types.
_POSITION = {"topic": "string", "partition": "int", "offset": "bigint"}
_NO_HEADERS = "CAST(array() AS array<struct<key:string,value:binary>>)"


def dead_letters(decoded: DataFrame, flow: str) -> DataFrame:
    """Return the rows with an error as records for a topic: key, value and headers.

    :param decoded: From `decode` or `expect`.
    """
    position = {name: f.col(name) for name in (*_POSITION, "timestamp")}
    headers = letter_headers(f.col("error"), flow, position, f.col("headers"))
    return decoded.where("error IS NOT NULL").select("key", "value", headers.alias("headers"))


def letter_headers(
    reason: Column, flow: str, position: Mapping[str, Column], headers: Column | None = None
) -> Column:
    """Return the headers of a dead letter; the reason comes first, and nulls are left out."""
    texts = {name: column.cast("string") for name, column in position.items() if name != "timestamp"}
    if "timestamp" in position:
        texts["timestamp"] = f.unix_millis(position["timestamp"]).cast("string")
    values = {"reason": reason, "flow": f.lit(flow), **texts}
    ours = [
        f.when(
            value.isNotNull(),
            f.struct(f.lit(_PREFIX + name).alias("key"), value.cast("binary").alias("value")),
        )
        for name, value in values.items()
    ]
    present = f.array_compact(f.array(*ours))
    return present if headers is None else f.concat(present, f.coalesce(headers, f.expr(_NO_HEADERS)))


def parsed_letters(records: DataFrame) -> DataFrame:
    """Return the records of a dead-letter topic with what their headers say, to search and to repair them.

    The columns are `key`, `value`, `headers`, `reason`, `flow`, and the record's `topic`, `partition`, `offset` and
    `timestamp`. To replay letters, write `key`, `value` and `headers` to the replay topic.
    """
    return records.select(
        "key",
        "value",
        "headers",
        _header("reason").alias("reason"),
        _header("flow").alias("flow"),
        *[_header(name).try_cast(kind).alias(name) for name, kind in _POSITION.items()],
        _time().alias("timestamp"),
    )


def restored(records: DataFrame, replay_topic: str) -> DataFrame:
    """Return records in which dead letters from the replay topic are the records that they were first.

    :param records: Of all topics of a flow, with headers. Only the replay topic's records are believed: in others a
        producer could set these headers, too. There, a record whose header is no offset is no letter.
    """
    columns = {name: _header(name).try_cast(kind) for name, kind in _POSITION.items()}
    replayed = (f.col("topic") == f.lit(replay_topic)) & columns["offset"].isNotNull()
    columns["timestamp"] = _time()
    columns["headers"] = f.expr(f"filter(headers, header -> NOT startswith(header.key, '{_PREFIX}'))")
    return records.select(
        *[
            f.when(replayed, columns[name]).otherwise(f.col(name)).alias(name) if name in columns else name
            for name in RECORD
        ]
    )


def _time() -> Column:
    """Return the time in a letter's header, null if it is not a valid one."""
    return f.timestamp_micros(f.try_multiply(_header("timestamp").try_cast("bigint"), f.lit(1_000)))


def _header(name: str) -> Column:
    """Return the text of a letter's header, null if there is none."""
    return f.expr(f"CAST(get(filter(headers, header -> header.key = '{_PREFIX}{name}'), 0).value AS STRING)")
