package release

import (
	"context"
	"log/slog"
)

// quiet lets Helm speak only to those who listen closely: what matters comes back as an error.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, _ slog.Level) bool {
	return q.Handler.Enabled(ctx, slog.LevelInfo)
}

func (q quiet) Handle(ctx context.Context, record slog.Record) error {
	record.Level = slog.LevelInfo
	return q.Handler.Handle(ctx, record)
}

func (q quiet) WithAttrs(attributes []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attributes)}
}

func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
