"""Topics to read, written by Spark's own Kafka connector, whose producer is Kafka's."""

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

#: Words of a small vocabulary, so that values compress about like events.
_WORDS = "array('search','basket','product','home','checkout','returns','wish list','account')"
_JSON = (
    "to_json(named_struct('event_id', id, 'user', concat('user-', id % 100000), "
    f"'page', {_WORDS}[cast(id % 8 as int)], 'amount', (id * 7919 % 10000) / 100, "
    "'time', timestamp_seconds(1800000000 + id)))"
)
MB = 1_000_000

WIDE_COLUMNS_COUNT = 200
_WIDE = [f"c{number}" for number in range(WIDE_COLUMNS_COUNT)]
#: The columns of a wide JSON event: every fourth is a text, the others are numbers.
WIDE_SCHEMA = ", ".join(
    f"{name} {'STRING' if number % 4 == 3 else 'BIGINT'}" for number, name in enumerate(_WIDE)
)
_WIDE_JSON = "to_json(named_struct({}))".format(
    ", ".join(
        f"'{name}', {f'concat({name[1:]}, string(id % 977))' if number % 4 == 3 else f'id * {number + 1} % 1000003'}"
        for number, name in enumerate(_WIDE)
    )
)


@dataclass(frozen=True)
class Shape:
    """A kind of records."""

    name: str
    text: str
    value: str  #: the SQL of a value, computed from `id`
    rows_count: int
    compression: str = "none"
    key: str = "concat('key-', id)"  #: likewise


def plain(name: str, value_bytes: int, rows_count: int) -> Shape:
    """Return values of a fixed length that do not compress."""
    text = f"{rows_count:,} records of {value_bytes:,} B"
    value = f"binary(left(repeat(sha2(string(id), 512), {value_bytes // 128 + 1}), {value_bytes}))"
    return Shape(name, text, value, rows_count)


def cheap(name: str, value_bytes: int, rows_count: int) -> Shape:
    """Return values of a fixed length that are cheap to generate, for measurements of writing."""
    text = f"{rows_count:,} records of {value_bytes:,} B"
    return Shape(name, text, f"lpad(string(id), {value_bytes}, 'written by Spark ')", rows_count)


def shapes(scale: float) -> list[Shape]:
    """Return the record kinds of the queries; `scale` 1 is the full size."""
    json_count = int(1_000_000 * scale)
    return [
        plain("100-bytes", 100, int(2_000_000 * scale)),
        plain("1-kib", 1024, int(400_000 * scale)),
        Shape("json", f"{json_count:,} JSON events, zstd", _JSON, json_count, "zstd"),
    ]


def wide(rows_count: int) -> Shape:
    """Return JSON events with 200 columns."""
    text = f"{rows_count:,} JSON events of {WIDE_COLUMNS_COUNT} columns"
    return Shape("wide", text, _WIDE_JSON, rows_count, "zstd")


def rows(session: SparkSession, shape: Shape) -> DataFrame:
    """Return keys and values to write."""
    source = session.range(0, shape.rows_count, 1, 2)
    return source.selectExpr(f"binary({shape.key}) key", f"binary({shape.value}) value")


def fill(session: SparkSession, bootstrap: str, topic: str, shape: Shape) -> None:
    """Write to a topic whose partitions exist."""
    (
        rows(session, shape)
        .write.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("kafka.compression.type", shape.compression)
        .option("kafka.linger.ms", "20")
        .option("topic", topic)
        .mode("append")
        .save()
    )
