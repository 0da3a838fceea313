"""The format `serialized` of a schema of Protobuf."""

from barnabas.registry.schemas import ParsedSchema


def serialized_format(schema: ParsedSchema) -> str:
    """Return the FileDescriptorProto in base64."""
    from barnabas.registry.protobuf.schema import ProtobufSchema  # heavy

    assert isinstance(schema, ProtobufSchema)
    return schema.serialized
