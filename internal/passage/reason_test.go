package passage

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFirstHold(t *testing.T) {
	type door struct{ locked, barred bool }
	asked := ""
	unlocked := func(d door) *Reason {
		asked += "locked? "
		if d.locked {
			return Hold("Locked", "find the key")
		}
		return nil
	}
	unbarred := func(d door) *Reason {
		asked += "barred? "
		if d.barred {
			return Hold("Barred", "lift the bar")
		}
		return nil
	}
	cases := map[string]struct {
		door  door
		want  Code
		asked string
	}{
		"all open":            {door{}, "", "locked? barred? "},
		"the second holds":    {door{barred: true}, "Barred", "locked? barred? "},
		"the first one tells": {door{locked: true, barred: true}, "Locked", "locked? "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asked = ""
			var got Code
			if hold := FirstHold(tc.door, unlocked, unbarred); hold != nil {
				got = hold.Code
			}
			if got != tc.want || asked != tc.asked {
				t.Errorf("got %q after %q, want %q after %q", got, asked, tc.want, tc.asked)
			}
		})
	}
	if FirstHold(door{locked: true}) != nil {
		t.Error("held without a gate")
	}
}

func TestReason(t *testing.T) {
	cases := map[string]struct {
		reason Reason
		want   string
	}{
		"both":      {Because("RevisionNotReady", "%s is not ready", "default-v1-26-0"), "RevisionNotReady: default-v1-26-0 is not ready"},
		"code only": {Reason{Code: "Paused"}, "Paused"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.reason.String(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestMessagesAreBounded(t *testing.T) {
	for _, filler := range []string{"x", "é", "舫", "⚓"} {
		for length := maxMessage - 4; length < maxMessage+4; length++ {
			text := strings.Repeat("x", length%4) + strings.Repeat(filler, length)
			got := Because("Long", "%s", text).Message
			switch {
			case len(got) > maxMessage:
				t.Errorf("%d bytes of %q became %d", len(text), filler, len(got))
			case !utf8.ValidString(got):
				t.Errorf("%d bytes of %q were cut inside a character", len(text), filler)
			case len(text) <= maxMessage && got != text:
				t.Errorf("%d bytes of %q were cut needlessly", len(text), filler)
			case len(text) > maxMessage && !strings.HasSuffix(got, "..."):
				t.Errorf("%d bytes of %q were cut without a sign", len(text), filler)
			}
		}
	}
}

// What a tenant writes into an annotation or a tag comes back in messages.
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"Deployment shop/cart: läuft…\n\tdone": "Deployment shop/cart: läuft…\n\tdone",
		"\x1b]0;owned\a\x1b[2Jx":               `\x1b]0;owned\x07\x1b[2Jx`,
		"all fine\rfailed":                     `all fine\x0dfailed`,
		"\u009b31m\x7f":                        `\x9b31m\x7f`,
		"\xff\xfe":                             `\xff\xfe`,
		"\ufffd":                               "\ufffd",
		"":                                     "",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
		if got := Because("Why", "%s", text).Message; got != want {
			t.Errorf("%q is quoted as %q, want %q", text, got, want)
		}
	}
}
