package operator

import (
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// What --log-format and --log-level accept.
var (
	LogFormats = []string{"json", "text"}
	LogLevels  = []string{"debug", "info", "warn", "error"}
)

// NewLogger writes structured lines to w; format and level are validated ones.
func NewLogger(w io.Writer, format, level string) logr.Logger {
	var threshold slog.Level
	if err := threshold.UnmarshalText([]byte(level)); err != nil {
		threshold = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: threshold}
	if format == "text" {
		return logr.FromSlogHandler(slog.NewTextHandler(w, options))
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(w, options))
}

// setLogger redirects libraries with global loggers to ours.
func setLogger(log logr.Logger) {
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	// Helm logs to slog's default; debug level is enough.
	slog.SetDefault(slog.New(logr.ToSlogHandler(log.V(1))))
}
