package render

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/passage"
)

// What a tenant writes into an annotation, or a proxy into a refusal, comes back in reasons: a terminal shows it, and does not obey it.
func TestHostileTextIsShown(t *testing.T) {
	const hostile = "\x1b]0;owned\a\x1b[2J\x1b[31mall is fine\rgone"
	var out bytes.Buffer
	report := NewStatusReport(planOf(nil, step("run", "r", passage.Failed, hostile)), passage.Batching{}, nil, true, time.Now())
	NewTTY(&out, func() int { return 50 }).Draw(&report)
	text := out.String()
	for _, own := range []string{"\033[2J", "\033[H", "\033[K", "\033[J"} {
		text = strings.ReplaceAll(text, own, "")
	}
	if strings.ContainsAny(text, "\x1b\a\r") || !strings.Contains(text, `\x1b]0;owned`) {
		t.Errorf("drawn is %q", text)
	}
}
