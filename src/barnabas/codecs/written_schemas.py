"""Avro values of other versions of a subject, read by the schema with which they were written."""

from barnabas.codecs.errors import ConversionError
from barnabas.codecs.registry_schemas import RegistrySchemas
from barnabas.registry.avro.model import AvroType
from barnabas.registry.avro.schema import AvroSchema
from barnabas.registry.client import RegistryClient
from barnabas.registry.codecs.avro_resolution import translate_avro
from barnabas.registry.codecs.errors import MalformedValue


class WrittenSchemas:
    """Translates data to one schema; asks the registry once for each other id."""

    def __init__(self, url: str, schema: str, schema_id: int) -> None:
        """:param schema: The schema of the rows, complete in itself.
        :param schema_id: Its id.
        """
        self._schemas = RegistrySchemas(RegistryClient(url))
        self._reader = AvroSchema.parse(schema, {}, is_new=False).root
        self._schema_id = schema_id

    def translated(self, schema_id: int, body: bytes) -> bytes:
        """Return a datum of any schema of the registry as one of the rows' schema.

        :raises ConversionError: There is no such schema, or the datum does not fit.
        :raises ConnectionError: The registry does not respond.
        """
        if schema_id == self._schema_id:
            return body
        writer = self._writer(schema_id)
        try:
            return translate_avro(self._reader, writer, body)
        except MalformedValue as error:
            raise ConversionError(f"as a value of schema {schema_id}, {error}") from None

    def _writer(self, schema_id: int) -> AvroType:
        schema = self._schemas.schema(schema_id)
        if isinstance(schema, str):
            raise ConversionError(schema)
        if not isinstance(schema.parsed, AvroSchema):
            raise ConversionError(f"its schema id is {schema_id}, whose schema is not Avro")
        return schema.parsed.root
