// srclient as a JSON-lines program: srclient REGISTRY-URL HOST:PORT. It logs in to the registry if the environment says
// so. The library has no serializers: programs put the header before the values of its codecs.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"strconv"

	"barnabas.interop/lines"
	"barnabas.interop/values"
	"github.com/riferrei/srclient"
)

var bootstrap = os.Args[2]

func main() {
	client := srclient.NewSchemaRegistryClient(os.Args[1])
	if user := os.Getenv("INTEROP_USER"); user != "" {
		client.SetCredentials(user, os.Getenv("INTEROP_PASSWORD"))
	}
	lines.Serve(map[string]lines.Operation{
		"produce":        with(client, produce),
		"consume":        with(client, consume),
		"register":       with(client, register),
		"look_up":        with(client, lookUp),
		"latest":         with(client, latest),
		"is_compatible":  with(client, isCompatible),
		"subjects":       with(client, subjects),
		"versions":       with(client, versions),
		"level":          with(client, level),
		"set_level":      with(client, setLevel),
		"delete_subject": with(client, deleteSubject),
		"delete_version": with(client, deleteVersion),
	}, errorName)
}

type client = *srclient.SchemaRegistryClient

func with(client client, operation func(context.Context, client, lines.Command) (any, error)) lines.Operation {
	return func(ctx context.Context, command lines.Command) (any, error) { return operation(ctx, client, command) }
}

// errorName is the code of an error.
func errorName(err error) string {
	var refused srclient.Error
	if errors.As(err, &refused) {
		return strconv.Itoa(refused.Code)
	}
	return "error"
}

func referencesOf(schema lines.Schema) (references []srclient.Reference) {
	for _, each := range schema.References {
		references = append(references, srclient.Reference(each))
	}
	return references
}

func create(client client, subject string, schema lines.Schema) (*srclient.Schema, error) {
	return client.CreateSchema(subject, schema.Text, srclient.SchemaType(schema.Type), referencesOf(schema)...)
}

func identified(found *srclient.Schema, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return map[string]int{"id": found.ID(), "version": found.Version()}, nil
}

func register(_ context.Context, client client, c lines.Command) (any, error) {
	created, err := create(client, c.Subject, c.Schema)
	if err != nil {
		return nil, err
	}
	return created.ID(), nil
}

func lookUp(_ context.Context, client client, c lines.Command) (any, error) {
	kind := srclient.SchemaType(c.Schema.Type)
	return identified(client.LookupSchema(c.Subject, c.Schema.Text, kind, referencesOf(c.Schema)...))
}

func latest(_ context.Context, client client, c lines.Command) (any, error) {
	return identified(client.GetLatestSchema(c.Subject))
}

func isCompatible(_ context.Context, client client, c lines.Command) (any, error) {
	kind := srclient.SchemaType(c.Schema.Type)
	return client.IsSchemaCompatible(c.Subject, c.Schema.Text, "latest", kind, referencesOf(c.Schema)...)
}

func subjects(_ context.Context, client client, c lines.Command) (any, error) {
	if c.Deleted {
		return client.GetSubjectsIncludingDeleted()
	}
	return client.GetSubjects()
}

func versions(_ context.Context, client client, c lines.Command) (any, error) {
	return client.GetSchemaVersions(c.Subject)
}

func level(_ context.Context, client client, c lines.Command) (any, error) {
	return client.GetCompatibilityLevel(c.Subject, true)
}

func setLevel(_ context.Context, client client, c lines.Command) (any, error) {
	return client.ChangeSubjectCompatibilityLevel(c.Subject, srclient.CompatibilityLevel(c.Level))
}

func deleteSubject(_ context.Context, client client, c lines.Command) (any, error) {
	return nil, client.DeleteSubject(c.Subject, c.Permanent)
}

func deleteVersion(_ context.Context, client client, c lines.Command) (any, error) {
	return nil, client.DeleteSubjectByVersion(c.Subject, c.Version, c.Permanent)
}

// produce registers a schema and sends one value; the result is the id.
func produce(ctx context.Context, client client, c lines.Command) (any, error) {
	created, err := create(client, c.Topic+"-value", c.Schema)
	if err != nil {
		return nil, err
	}
	codec, err := codecOf(created)
	if err != nil {
		return nil, err
	}
	value, err := codec.Encode(values.JSON(*c.Value))
	if err != nil {
		return nil, err
	}
	data := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(created.ID())), value...)
	return created.ID(), values.Write(ctx, bootstrap, c.Topic, data)
}

// consume reads values with the schemas of their ids.
func consume(ctx context.Context, client client, c lines.Command) (any, error) {
	encoded, err := values.Read(ctx, bootstrap, c.Topic, c.Count)
	if err != nil {
		return nil, err
	}
	decoded := []json.RawMessage{}
	for _, data := range encoded {
		schema, err := client.GetSchema(int(binary.BigEndian.Uint32(data[1:5])))
		if err != nil {
			return nil, err
		}
		codec, err := codecOf(schema)
		if err != nil {
			return nil, err
		}
		value, err := codec.Decode(data[5:])
		if err != nil {
			return nil, err
		}
		decoded = append(decoded, json.RawMessage(value))
	}
	return decoded, nil
}

func codecOf(schema *srclient.Schema) (values.Codec, error) {
	if kind := schema.SchemaType(); kind != nil && *kind == srclient.Json {
		return values.Plain(schema.JsonSchema().Validate), nil
	}
	return values.Avro(schema.Schema())
}
