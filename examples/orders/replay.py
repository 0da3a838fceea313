"""Repair dead letters and write them to the replay topic, which the pipeline reads on its next run.

python -m examples.orders.replay --bootstrap HOST:PORT [--round 0]

The events that are not UTF-8 have one byte too much at the beginning. A round is written once, however often the
command is started; the next one has the next number and reads all letters again, so say which ones it repairs.
"""

import argparse

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from pyspark_barnabas.decoding.dead_letters import parsed_letters
from pyspark_barnabas.runtime.session import spark_session

REASON = "the value is not UTF-8"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bootstrap", default="127.0.0.1:9092", help="Kafka cluster")
    parser.add_argument("--round", type=int, default=0, help="number of this replay")
    options = parser.parse_args()
    session = spark_session("replay", master="local[2]")
    replay(session, options.bootstrap, options.round)
    session.stop()


def replay(session: SparkSession, bootstrap: str, number: int) -> None:
    """Write repaired letters with their headers, which say where the records were first."""
    options = {"kafka.bootstrap.servers": bootstrap, "kafka.isolation.level": "read_committed"}
    reader = session.read.format("barnabas").options(**options, subscribe="shop-dead", includeHeaders="true")
    letters = parsed_letters(reader.load()).where(f.col("reason") == REASON)
    repaired = letters.select("key", f.expr("substring(value, 2)").alias("value"), "headers")
    names = {"topic": "shop-replay", "sinkName": "shop-replay", "batchId": str(number)}
    writer = repaired.write.format("barnabas").options(**options, **names, delivery="exactly-once")
    writer.mode("append").save()


if __name__ == "__main__":
    main()
