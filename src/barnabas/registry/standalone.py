"""Other forms of schemas: with all that they refer to, and descriptors of Protobuf."""

from barnabas.registry.schemas import ParsedSchema


def standalone_schema(schema: ParsedSchema) -> bytes:
    """Return a schema with all that it refers to: JSON of Avro, or a FileDescriptorSet of Protobuf.

    :raises ValueError: For a schema of another type.
    """
    # heavy: only schemas of a type need its library
    from barnabas.registry.avro.schema import AvroSchema

    if isinstance(schema, AvroSchema):
        return schema.standalone.encode()
    from barnabas.registry.protobuf.schema import ProtobufSchema

    if isinstance(schema, ProtobufSchema):
        return schema.descriptor_set()
    message = "only schemas of Avro and Protobuf can stand alone"
    raise ValueError(message)


def serialized_descriptor(schema: ParsedSchema) -> str:
    """Return the FileDescriptorProto of a schema of Protobuf, in base64."""
    from barnabas.registry.protobuf.schema import ProtobufSchema  # heavy

    assert isinstance(schema, ProtobufSchema)
    return schema.serialized
