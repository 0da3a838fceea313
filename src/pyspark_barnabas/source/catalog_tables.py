"""Tables in Spark's catalog: `CREATE TABLE orders USING barnabas OPTIONS (...)`.

Spark passes the options of a table to a data source in Python only when the table is created. But the catalog keeps the
schema that the source returns then, so the options are kept in it, as metadata of the last column.
"""

import json
from collections.abc import Mapping

from pyspark.sql.types import StructField, StructType

from barnabas.config.broker_config import find_broker_key
from barnabas.reading.option_values import OptionError
from pyspark_barnabas.source.options import batch_options, stream_options

_METADATA = "barnabas.options"
#: Spark adds the table's provider to the options of CREATE TABLE, and a copy of each option with a prefix.
_PROVIDER = "provider"
_PREFIX = "option."

_NO_OPTIONS = (
    "there are no options. Spark does not pass those of a table to a data source in Python: create the table without "
    "columns, so that its schema keeps them, or name them in the query, as in "
    "SELECT * FROM orders WITH (`kafka.bootstrap.servers` = '127.0.0.1:9092', subscribe = 'orders')"
)


def options_of_new_table(options: Mapping[str, str]) -> dict[str, str] | None:
    """Return the options of the table that Spark is creating; None if it creates none.

    :raises OptionError: For an option that is not valid, or that is secret.
    """
    if not any(name.lower() == _PROVIDER for name in options):
        return None
    own = {name[len(_PREFIX) :]: value for name, value in options.items() if name.lower().startswith(_PREFIX)}
    for name in own:
        key = find_broker_key(name.lower().removeprefix("kafka."))
        if (key is not None and key.sensitive) or name.lower().endswith(("secret", "password")):
            message = (
                f"option '{name}' is secret, and every user who can read the catalog could read it: leave it out of "
                f"the table, and name it in queries, as in SELECT * FROM orders WITH (`{name}` = '...')"
            )
            raise OptionError(message)
    _check(own)
    return own


def _check(options: Mapping[str, str]) -> None:
    """Check that the table can be read as a batch or as a stream."""
    try:
        batch_options(options)
    except OptionError as batch_error:
        try:
            stream_options(options)
        except OptionError:
            raise batch_error from None


def with_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """Return the schema of a table that keeps its options."""
    *others, last = schema.fields
    metadata = {_METADATA: json.dumps(dict(options), sort_keys=True)}
    return StructType([*others, StructField(last.name, last.dataType, last.nullable, metadata)])


def options_for_reading(schema: StructType, given_options: Mapping[str, str]) -> Mapping[str, str]:
    """Return the options of a table with those of the query, which take precedence.

    :raises OptionError: If there are none at all.
    """
    kept: dict[str, str] = {}
    for column in schema.fields:
        kept |= json.loads(column.metadata.get(_METADATA, "{}"))
    if not kept and not given_options:
        raise OptionError(_NO_OPTIONS)
    replaced = {name.lower() for name in given_options}
    return {name: value for name, value in kept.items() if name.lower() not in replaced} | dict(given_options)
