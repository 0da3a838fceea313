// franz-go's client of schema registries as a JSON-lines program: sr REGISTRY-URL HOST:PORT. It logs in to the registry
// if the environment says so.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"barnabas.interop/lines"
	"github.com/twmb/franz-go/pkg/sr"
)

var bootstrap = os.Args[2]

func main() {
	options := []sr.ClientOpt{sr.URLs(os.Args[1])}
	if user := os.Getenv("INTEROP_USER"); user != "" {
		options = append(options, sr.BasicAuth(user, os.Getenv("INTEROP_PASSWORD")))
	}
	client, err := sr.NewClient(options...)
	if err != nil {
		panic(err)
	}
	lines.Serve(map[string]lines.Operation{
		"produce":        with(client, produce),
		"consume":        with(client, consume),
		"register":       with(client, register),
		"look_up":        with(client, lookUp),
		"is_compatible":  with(client, isCompatible),
		"subjects":       with(client, subjects),
		"versions":       with(client, versions),
		"version":        with(client, version),
		"text":           with(client, text),
		"referrers":      with(client, referrers),
		"usages":         with(client, usages),
		"schemas":        with(client, schemas),
		"types":          with(client, types),
		"level":          with(client, level),
		"set_level":      with(client, setLevel),
		"reset_level":    with(client, resetLevel),
		"mode":           with(client, mode),
		"set_mode":       with(client, setMode),
		"reset_mode":     with(client, resetMode),
		"delete_subject": with(client, deleteSubject),
		"delete_version": with(client, deleteVersion),
	}, errorName)
}

func with(client *sr.Client, operation func(context.Context, *sr.Client, lines.Command) (any, error)) lines.Operation {
	return func(ctx context.Context, command lines.Command) (any, error) {
		if command.Deleted {
			ctx = sr.WithParams(ctx, sr.ShowDeleted)
		}
		return operation(ctx, client, command)
	}
}

// errorName is the name that the client has for the code of an error.
func errorName(err error) string {
	var refused *sr.ResponseError
	if !errors.As(err, &refused) {
		return "error"
	}
	if known := refused.SchemaError(); known != sr.ErrUnknown {
		return known.Name
	}
	return strconv.Itoa(refused.StatusCode)
}

func schemaOf(given lines.Schema) sr.Schema {
	schema := sr.Schema{Schema: given.Text}
	if err := schema.Type.UnmarshalText([]byte(given.Type)); err != nil {
		panic(err)
	}
	for _, each := range given.References {
		schema.References = append(schema.References, sr.SchemaReference(each))
	}
	return schema
}

func identified(found sr.SubjectSchema, err error) (any, error) {
	return map[string]any{"id": found.ID, "version": found.Version, "type": found.Type.String()}, err
}

func register(ctx context.Context, client *sr.Client, c lines.Command) (any, error) {
	return identified(client.CreateSchema(ctx, c.Subject, schemaOf(c.Schema)))
}

func lookUp(ctx context.Context, client *sr.Client, c lines.Command) (any, error) {
	return identified(client.LookupSchema(ctx, c.Subject, schemaOf(c.Schema)))
}

func isCompatible(ctx context.Context, client *sr.Client, c lines.Command) (any, error) {
	ctx = sr.WithParams(ctx, sr.Verbose)
	found, err := client.CheckCompatibility(ctx, c.Subject, c.Version, schemaOf(c.Schema))
	return map[string]any{"is": found.Is, "messages": found.Messages}, err
}

func subjects(ctx context.Context, client *sr.Client, _ lines.Command) (any, error) {
	return client.Subjects(ctx)
}

func versions(ctx context.Context, client *sr.Client, c lines.Command) (any, error) {
	return client.SubjectVersions(ctx, c.Subject)
}

func version(ctx context.Context, client *sr.Client, c lines.Command) (any, error) {
	return identified(client.SchemaByVersion(ctx, c.Subject, c.Version))
}

func text(ctx context.Context, client *sr.Client, c lines.Command) (any, error) {
	return client.SchemaTextByVersion(ctx, c.Subject, c.Version)
}

func referrers(ctx context.Context, client *sr.Client, c lines.Command) (any, error) {
	found, err := client.SchemaReferences(ctx, c.Subject, c.Version)
	return named(found), err
}

// usages are those of the version's id.
func usages(ctx context.Context, client *sr.Client, c lines.Command) (any, error) {
	found, err := client.SchemaByVersion(ctx, c.Subject, c.Version)
	if err != nil {
		return nil, err
	}
	return client.SubjectsByID(ctx, found.ID)
}

func schemas(ctx context.Context, client *sr.Client, c lines.Command) (any, error) {
	found, err := client.AllSchemas(sr.WithParams(ctx, sr.SubjectPrefix(c.Subject), sr.LatestOnly))
	return named(found), err
}

func named(schemas []sr.SubjectSchema) []string {
	names := []string{}
	for _, each := range schemas {
		names = append(names, fmt.Sprintf("%s %d", each.Subject, each.Version))
	}
	return names
}

func types(ctx context.Context, client *sr.Client, _ lines.Command) (any, error) {
	return client.SupportedTypes(ctx)
}

func deleteSubject(ctx context.Context, client *sr.Client, c lines.Command) (any, error) {
	return client.DeleteSubject(ctx, c.Subject, sr.DeleteHow(c.Permanent))
}

func deleteVersion(ctx context.Context, client *sr.Client, c lines.Command) (any, error) {
	return nil, client.DeleteSchema(ctx, c.Subject, c.Version, sr.DeleteHow(c.Permanent))
}
