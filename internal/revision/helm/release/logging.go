package release

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
)

// debugHandler lowers the log lines of Helm to debug level: errors are returned anyway.
type debugHandler struct{ slog.Handler }

func (q debugHandler) Enabled(ctx context.Context, _ slog.Level) bool {
	return q.Handler.Enabled(ctx, slog.LevelInfo)
}

func (q debugHandler) Handle(ctx context.Context, record slog.Record) error {
	record.Level = slog.LevelInfo
	return q.Handler.Handle(ctx, record)
}

func (q debugHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return debugHandler{q.Handler.WithAttrs(attributes)}
}

func (q debugHandler) WithGroup(name string) slog.Handler {
	return debugHandler{q.Handler.WithGroup(name)}
}

// WarningLogger logs warnings of the API server about objects of charts at debug level.
type WarningLogger struct{}

// HandleWarningHeaderWithContext logs a warning.
func (WarningLogger) HandleWarningHeaderWithContext(ctx context.Context, _ int, _ string, text string) {
	logr.FromContextOrDiscard(ctx).V(1).Info("the API server warns about an installed object", "warning", text)
}
