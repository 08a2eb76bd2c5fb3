package console

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAskYesNo(t *testing.T) {
	for answer, want := range map[string]bool{
		"y\n": true, "Yes\n": true, "y": true, "\n": false, "": false, "n\n": false, "yesterday\n": false, " y \nn\n": true,
	} {
		var out bytes.Buffer
		got, err := askYesNo(t.Context(), strings.NewReader(answer), &out, "Sure?")
		if got != want || err != nil {
			t.Errorf("%q is %t, %v", answer, got, err)
		}
		if !strings.HasPrefix(out.String(), "Sure? [y/N] ") {
			t.Errorf("it asks %q", out.String())
		}
	}
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		silent, _ := io.Pipe()
		if got, err := askYesNo(ctx, silent, io.Discard, "Sure?"); got || !errors.Is(err, context.Canceled) {
			t.Errorf("%t, %v", got, err)
		}
	})
}
