"""The shop's events: checked and stored as a table, counted in windows, and written to topics and Delta tables."""

from pyspark import pipelines as sdp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pyspark_barnabas.decoding.dead_letters import dead_letters, restored
from pyspark_barnabas.decoding.records import decode, expect, good_rows, json_values

spark = SparkSession.active()
BOOTSTRAP = spark.conf.get("orders.bootstrap")
TABLES = spark.conf.get("orders.tables")
EVENT = json_values(
    "id BIGINT, kind STRING, customer STRING, item STRING, cents BIGINT, at_ms BIGINT, sent_ms BIGINT"
)
SOURCE = {
    "kafka.bootstrap.servers": BOOTSTRAP,
    "kafka.isolation.level": "read_committed",
    "subscribe": "shop-events,shop-replay",
    "startingOffsets": "earliest",
    "includeHeaders": "true",
    "maxOffsetsPerTrigger": "250000",
}
#: In SQL, because withWatermark analyses its table, which Spark does not let a query function do.
WINDOWS = """
    SELECT date_format(window.start, 'HH:mm') AS start, count_if(kind = 'order') AS orders,
           count_if(kind = 'click') AS clicks, sum(cents) AS cents
    FROM STREAM events WATERMARK at DELAY OF INTERVAL 1 HOUR
    GROUP BY window(at, '15 minutes')
"""


@sdp.temporary_view
def checked() -> DataFrame:
    """All records, each with a row or an error."""
    records = spark.readStream.format("barnabas").options(**SOURCE).load()
    decoded = decode(restored(records, replay_topic="shop-replay"), EVENT)
    return expect(
        decoded,
        known="row.kind IN ('order', 'click', 'end')",
        paid="row.cents >= 0",
        in_time="row.sent_ms <= row.at_ms + 30 * 60000",
    )


@sdp.table(partition_cols=["kind"], comment="Valid events, each with the position of its record")
def events() -> DataFrame:
    rows = good_rows(spark.readStream.table("checked"), "topic", "partition", "offset")
    return rows.select(
        "id",
        "customer",
        "item",
        "cents",
        f.timestamp_millis("at_ms").alias("at"),
        f.timestamp_millis("sent_ms").alias("sent"),
        "topic",
        "partition",
        "offset",
        "kind",
    )


@sdp.materialized_view(comment="Sales by item")
def sales() -> DataFrame:
    orders = spark.read.table("events").where("kind = 'order'")
    return orders.groupBy("item").agg(f.count("*").alias("orders"), f.sum("cents").alias("cents"))


sdp.create_sink(
    "dead_letters_topic", "barnabas", {"kafka.bootstrap.servers": BOOTSTRAP, "topic": "shop-dead"}
)
sdp.create_sink("windows_topic", "barnabas", {"kafka.bootstrap.servers": BOOTSTRAP, "topic": "shop-windows"})
sdp.create_sink("events_delta", "barnabas-delta", {"path": f"{TABLES}/events", "partitionBy": "kind"})
# the last event of each customer: what create_auto_cdc_flow does in catalogs whose tables support MERGE
sdp.create_sink(
    "customers_delta",
    "barnabas-delta",
    {"path": f"{TABLES}/customers", "keys": "customer", "sequenceBy": "id"},
)


@sdp.append_flow(target="dead_letters_topic")
def to_dead_letters() -> DataFrame:
    return dead_letters(spark.readStream.table("checked"), flow="checked")


@sdp.append_flow(target="events_delta")
def to_delta() -> DataFrame:
    columns = ("id", "kind", "customer", "item", "cents", "at", "sent")
    return spark.readStream.table("events").select(*columns)


@sdp.append_flow(target="customers_delta")
def to_customers() -> DataFrame:
    return spark.readStream.table("events").select("customer", "id", "kind", "item", "at")


@sdp.append_flow(target="windows_topic")
def to_windows() -> DataFrame:
    windows = spark.sql(WINDOWS)
    value = f.to_json(f.struct("start", "orders", "clicks", "cents"))
    return windows.select(f.col("start").alias("key"), value.alias("value"))
