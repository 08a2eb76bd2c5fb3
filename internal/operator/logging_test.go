package operator

import (
	"bytes"
	"strings"
	"testing"
)

func TestLogger(t *testing.T) {
	cases := map[string]struct{ format, level, want string }{
		"json":       {"json", "info", `"msg":"hello"`},
		"text":       {"text", "info", `msg=hello`},
		"too quiet":  {"json", "error", ""},
		"unexpected": {"", "", `"msg":"hello"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			NewLogger(&out, c.format, c.level).Info("hello")
			if !strings.Contains(out.String(), c.want) || c.want == "" && out.Len() > 0 {
				t.Errorf("got %q", out.String())
			}
		})
	}
}
