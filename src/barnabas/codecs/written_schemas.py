"""Avro values of other versions of a subject, read by the schema with which they were written."""

from barnabas.codecs.errors import ConversionError
from barnabas.registry.avro.model import AvroType
from barnabas.registry.avro.schema import AvroSchema
from barnabas.registry.client import RegistryClient
from barnabas.registry.codecs.avro_resolution import translate_avro
from barnabas.registry.codecs.errors import MalformedValue
from barnabas.registry.errors import RegistryError
from barnabas.registry.schemas import InvalidSchema


class WrittenSchemas:
    """Translates data to one schema; asks the registry once for each other id."""

    def __init__(self, url: str, schema: str, schema_id: int) -> None:
        """:param schema: The schema of the rows, complete in itself.
        :param schema_id: Its id.
        """
        self._client = RegistryClient(url)
        self._reader = AvroSchema.parse(schema, {}, is_new=False).root
        self._schema_id = schema_id
        self._writers: dict[int, AvroType | str] = {}  #: or why there is none

    def translated(self, schema_id: int, body: bytes) -> bytes:
        """Return a datum of any schema of the registry as one of the rows' schema.

        :raises ConversionError: There is no such schema, or the datum does not fit.
        :raises ConnectionError: The registry does not respond.
        """
        if schema_id == self._schema_id:
            return body
        writer = self._writer(schema_id)
        if isinstance(writer, str):
            raise ConversionError(writer)
        try:
            return translate_avro(self._reader, writer, body)
        except MalformedValue as error:
            raise ConversionError(f"as a value of schema {schema_id}, {error}") from None

    def _writer(self, schema_id: int) -> AvroType | str:
        known = self._writers.get(schema_id)
        if known is None:
            known = self._writers[schema_id] = self._fetched(schema_id)
        return known

    def _fetched(self, schema_id: int) -> AvroType | str:
        try:
            parsed = self._client.parsed(self._client.by_id(schema_id).schema)
        except (RegistryError, InvalidSchema) as error:
            return f"its schema id is {schema_id}, whose schema cannot be used: {error}"
        if not isinstance(parsed, AvroSchema):
            return f"its schema id is {schema_id}, whose schema is not Avro"
        return parsed.root
