"""Descriptions of values, without a session."""

from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from pyspark_barnabas.decoding.records import TextFormat, ddl, json_values

SCHEMA = StructType([StructField("id", LongType()), StructField("a b`c", ArrayType(StringType()))])


def test_a_schema_is_shown_as_ddl_with_quotes_where_they_are_needed() -> None:
    assert ddl(SCHEMA) == "id BIGINT,`a b``c` array<string>"


def test_a_schema_object_needs_no_session() -> None:
    assert json_values(SCHEMA) == (SCHEMA, TextFormat.JSON)
