package main

import (
	"context"

	"barnabas.interop/lines"
	"github.com/twmb/franz-go/pkg/sr"
)

func levelOf(found []sr.CompatibilityResult) (any, error) {
	return found[0].Level.String(), found[0].Err
}

func level(ctx context.Context, client *sr.Client, c lines.Command) (any, error) {
	return levelOf(client.Compatibility(ctx, c.Subject))
}

func setLevel(ctx context.Context, client *sr.Client, c lines.Command) (any, error) {
	var given sr.SetCompatibility
	if err := given.Level.UnmarshalText([]byte(c.Level)); err != nil {
		return nil, err
	}
	return levelOf(client.SetCompatibility(ctx, given, c.Subject))
}

func resetLevel(ctx context.Context, client *sr.Client, c lines.Command) (any, error) {
	return levelOf(client.ResetCompatibility(ctx, c.Subject))
}

func modeOf(found []sr.ModeResult) (any, error) {
	return found[0].Mode.String(), found[0].Err
}

func mode(ctx context.Context, client *sr.Client, c lines.Command) (any, error) {
	return modeOf(client.Mode(ctx, c.Subject))
}

func setMode(ctx context.Context, client *sr.Client, c lines.Command) (any, error) {
	var given sr.Mode
	if err := given.UnmarshalText([]byte(c.Mode)); err != nil {
		return nil, err
	}
	return modeOf(client.SetMode(ctx, given, c.Subject))
}

func resetMode(ctx context.Context, client *sr.Client, c lines.Command) (any, error) {
	return modeOf(client.ResetMode(ctx, c.Subject))
}
