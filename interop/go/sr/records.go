package main

import (
	"context"
	"encoding/json"

	"barnabas.interop/lines"
	"barnabas.interop/values"
	"github.com/twmb/franz-go/pkg/sr"
	"google.golang.org/protobuf/types/descriptorpb"
)

// produce registers a schema and sends one value; the result is the id.
func produce(ctx context.Context, client *sr.Client, c lines.Command) (any, error) {
	created, err := client.CreateSchema(ctx, c.Topic+"-value", schemaOf(c.Schema))
	if err != nil {
		return nil, err
	}
	serde, err := serdeOf(ctx, client, created.ID, c.Schema.Message)
	if err != nil {
		return nil, err
	}
	data, err := serde.Encode(values.JSON(*c.Value))
	if err != nil {
		return nil, err
	}
	return created.ID, values.Write(ctx, bootstrap, c.Topic, data)
}

// consume reads values with the schemas of their ids.
func consume(ctx context.Context, client *sr.Client, c lines.Command) (any, error) {
	encoded, err := values.Read(ctx, bootstrap, c.Topic, c.Count)
	if err != nil {
		return nil, err
	}
	decoded := []json.RawMessage{}
	for _, data := range encoded {
		id, _, err := new(sr.ConfluentHeader).DecodeID(data)
		if err != nil {
			return nil, err
		}
		serde, err := serdeOf(ctx, client, id, c.Schema.Message)
		if err != nil {
			return nil, err
		}
		value, err := serde.DecodeNew(data)
		if err != nil {
			return nil, err
		}
		decoded = append(decoded, json.RawMessage(*value.(*values.JSON)))
	}
	return decoded, nil
}

// serdeOf encodes and decodes with the schema of an id.
func serdeOf(ctx context.Context, client *sr.Client, id int, message string) (*sr.Serde, error) {
	codec, err := codecOf(ctx, client, id, message)
	if err != nil {
		return nil, err
	}
	serde := sr.NewSerde()
	serde.Register(
		id, values.JSON{}, sr.Index(codec.Index...),
		sr.EncodeFn(func(value any) ([]byte, error) { return codec.Encode(value.(values.JSON)) }),
		sr.DecodeFn(func(data []byte, into any) (err error) {
			*into.(*values.JSON), err = codec.Decode(data)
			return err
		}),
	)
	return serde, nil
}

func codecOf(ctx context.Context, client *sr.Client, id int, message string) (values.Codec, error) {
	schema, err := client.SchemaByID(ctx, id)
	if err != nil {
		return values.Codec{}, err
	}
	switch schema.Type {
	case sr.TypeAvro:
		standalone, err := client.SchemaByID(sr.WithParams(ctx, sr.Format("resolved")), id)
		if err != nil {
			return values.Codec{}, err
		}
		return values.Avro(standalone.Schema)
	case sr.TypeProtobuf:
		ctx = sr.WithParams(ctx, sr.Format("serialized"))
		described, err := client.SchemaByID(ctx, id)
		if err != nil {
			return values.Codec{}, err
		}
		files, err := filesOf(ctx, client, described, "value.proto")
		if err != nil {
			return values.Codec{}, err
		}
		return values.Protobuf(files, message)
	}
	return values.Plain(func(any) error { return nil }), nil
}

// filesOf returns a file after those that it imports.
func filesOf(
	ctx context.Context, client *sr.Client, schema sr.Schema, name string,
) ([]*descriptorpb.FileDescriptorProto, error) {
	var files []*descriptorpb.FileDescriptorProto
	for _, each := range schema.References {
		imported, err := client.SchemaByVersion(ctx, each.Subject, each.Version)
		if err != nil {
			return nil, err
		}
		more, err := filesOf(ctx, client, imported.Schema, each.Name)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	file, err := values.File(schema.Schema, name)
	return append(files, file), err
}
