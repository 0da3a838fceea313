"""User-defined schemas."""

import pytest
from pyspark.sql.types import StructType

from barnabas.reading.rows import ARROW_TYPES
from pyspark_barnabas import DefaultSource
from pyspark_barnabas.plain_errors import BarnabasError
from pyspark_barnabas.source.schemas import RECORD_TYPES, requested_columns, schema_of_options


def test_columns_are_the_connectors() -> None:
    assert schema_of_options({}).simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int>"
    )
    with_headers = schema_of_options({"INCLUDEHEADERS": "true"})
    assert with_headers["headers"].dataType.simpleString() == "array<struct<key:string,value:binary>>"


def test_spark_and_arrow_have_the_same_columns() -> None:
    assert list(RECORD_TYPES) == list(ARROW_TYPES)


def test_a_schema_selects_columns_in_its_order() -> None:
    schema = StructType().add("offset", "long").add("key", "binary")
    assert requested_columns(schema, RECORD_TYPES) == ("offset", "key")


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        (StructType(), "no columns"),
        (StructType().add("colour", "string"), "no column 'colour'.*key, value"),
        (StructType().add("value", "string"), "'value' is binary, not string"),
    ],
)
def test_an_invalid_schema_is_rejected(schema: StructType, named: str) -> None:
    with pytest.raises(BarnabasError, match=named):
        DefaultSource({"subscribe": "orders"}).reader(schema)
