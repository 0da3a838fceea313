"""Read tables with Spark, and print rows as JSON: `read_tables.py JARS CATALOG WAREHOUSE DELTA_PATH ICEBERG_TABLE`.

Then the records with offset 3 are deleted from the Delta table, with deletion vectors.
"""

import json
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession


def session(jars: str, catalog: str, warehouse: str) -> SparkSession:
    settings = {
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.barnabas": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.barnabas.type": "jdbc",
        "spark.sql.catalog.barnabas.uri": f"jdbc:sqlite:{catalog}",
        "spark.sql.catalog.barnabas.warehouse": warehouse,
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def rows(table: DataFrame) -> list[Any]:
    """Return the rows by partition and offset; bytes as hexadecimal digits, times in ms."""
    ordered = table.orderBy("kafka_partition", "kafka_offset").selectExpr(
        "hex(value)",
        "hex(kafka_key)",
        "kafka_partition",
        "kafka_offset",
        "unix_millis(kafka_timestamp)",
        "transform(kafka_headers, header -> array(header.key, hex(header.value)))",
    )
    return [list(row) for row in ordered.collect()]


def main() -> None:
    jars, catalog, warehouse, delta, iceberg = sys.argv[1:]
    spark = session(jars, catalog, warehouse)
    tables = rows(spark.read.format("delta").load(delta)), rows(spark.table(iceberg))
    spark.sql(f"ALTER TABLE delta.`{delta}` SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
    spark.sql(f"DELETE FROM delta.`{delta}` WHERE kafka_offset = 3")
    print(json.dumps(tables))


if __name__ == "__main__":
    main()
