"""Topic keys of the tables that `barnabas tables` keeps. A broker stores and validates them."""

from barnabas.config.definition import ConfigKey
from barnabas.config.keys import CLUSTER_WIDE, HONOURED, LONG, STRING
from barnabas.config.validators import AT_LEAST_1, NonNull, OneOf, Range

FORMAT = "barnabas.table.format"
LOCATION = "barnabas.table.location"
KEY_FORMAT = "barnabas.table.key.format"
VALUE_FORMAT = "barnabas.table.value.format"
TARGET_LAG_MS = "barnabas.table.target.lag.ms"
TARGET_FILE_BYTES = "barnabas.table.target.file.bytes"
RETENTION_MS = "barnabas.table.retention.ms"
HISTORY_MS = "barnabas.table.history.ms"

_DECODED = OneOf(("bytes", "string", "registry"))

# fmt: off
TABLE_KEYS: tuple[ConfigKey, ...] = (
    ConfigKey(FORMAT, STRING, "none", OneOf(("none", "delta", "iceberg")), CLUSTER_WIDE, HONOURED,
              "Format of the table that barnabas tables keeps of this topic; none keeps no table.", since="Barnabas"),
    ConfigKey(LOCATION, STRING, "", NonNull(), CLUSTER_WIDE, HONOURED,
              "Directory or URL (s3://bucket/path) of the table; empty for a directory with the topic's name in the "
              "--location of barnabas tables run.", since="Barnabas"),
    ConfigKey(KEY_FORMAT, STRING, "bytes", _DECODED, CLUSTER_WIDE, HONOURED,
              "How the table shows keys: as bytes, as strings in UTF-8, or decoded with the schema registry.",
              since="Barnabas"),
    ConfigKey(VALUE_FORMAT, STRING, "bytes", _DECODED, CLUSTER_WIDE, HONOURED,
              "How the table shows values: as bytes, as strings in UTF-8, or decoded with the schema registry, with a "
              "column for each field.", since="Barnabas"),
    ConfigKey(TARGET_LAG_MS, LONG, 60_000, Range(100), CLUSTER_WIDE, HONOURED,
              "A record is in the table at most this many milliseconds after it was written, if the service is fast "
              "enough.", since="Barnabas"),
    ConfigKey(TARGET_FILE_BYTES, LONG, 134_217_728, Range(65_536), CLUSTER_WIDE, HONOURED,
              "Size in bytes up to which the files of the table are compacted.", since="Barnabas"),
    ConfigKey(RETENTION_MS, LONG, -1, Range(-1), CLUSTER_WIDE, HONOURED,
              "Rows whose timestamp is older than this many milliseconds are deleted from the table; -1 keeps them "
              "without limit, whatever the topic's own retention is.", since="Barnabas"),
    ConfigKey(HISTORY_MS, LONG, 604_800_000, AT_LEAST_1, CLUSTER_WIDE, HONOURED,
              "How many milliseconds earlier versions of the table can be read; then their files are deleted.",
              since="Barnabas"),
)
# fmt: on
