package convert

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/internal/meshservice/successor"
)

var update = flag.Bool("update", false, "rewrite what is expected in testdata")

// Each FILE.in.yaml becomes FILE.out.yaml, and what is said of it is FILE.report. FILE.services.yaml has the names of ports.
func TestConvert(t *testing.T) {
	files, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		base := strings.TrimSuffix(file, ".in.yaml")
		t.Run(filepath.Base(base), func(t *testing.T) {
			in, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var o Options
			if strings.HasSuffix(base, "-port") {
				o.Port = 80
			}
			if services, err := os.ReadFile(base + ".services.yaml"); err == nil {
				o.Ports, o.Unknown = servicesIn(t, services).Ports, "the cluster has none of that name"
			}
			out, report, err := Convert(in, o)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, base+".out.yaml", string(out))
			var reported strings.Builder
			for _, f := range report.Findings {
				fmt.Fprintf(&reported, "document %d line %d: %s %s %s %s: %s: %s\n", f.Document, f.Line, f.Kind, f.Policy, f.Field, f.Service, f.Action, f.Why)
			}
			compare(t, base+".report", reported.String())
			checkOnlyAdded(t, in, out, report)
			checkAgain(t, out, report, o)
			checkWithOthers(t, in, o)
		})
	}
}

func servicesIn(t testing.TB, text []byte) *Services {
	t.Helper()
	services := NewServices("kuma-system")
	if count, err := services.Read(text, ""); err != nil || count == 0 {
		t.Fatal(count, err)
	}
	return services
}

// namedPorts are those of a cluster in which each service has all ports, with names.
func namedPorts(_, _ string) []successor.Port {
	var ports []successor.Port
	for _, number := range []uint32{1, 80, 90, 5000, 6000, 7000} {
		ports = append(ports, successor.Port{Number: number, Name: fmt.Sprintf("port-%d", number)})
	}
	return ports
}

// checkWithOthers: who converts with the names of ports what somebody has converted without them, or the other way round,
// adds nothing.
func checkWithOthers(t *testing.T, in []byte, o Options) {
	t.Helper()
	with, without := Options{Port: o.Port, Ports: namedPorts}, Options{Port: o.Port}
	for _, c := range []struct{ first, second Options }{{with, without}, {without, with}} {
		out, _, err := Convert(in, c.first)
		if err != nil {
			t.Fatal(err)
		}
		again, report, err := Convert(out, c.second)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range report.Findings {
			// With the names, more can be said of a tag than without.
			if f.Action == Added && !strings.Contains(f.Why, "port-") {
				t.Errorf("converting again adds to line %d: %s: %s", f.Line, f.Why, cmp.Diff(string(out), string(again)))
			}
		}
	}
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: %s", file, diff)
	}
}

// checkOnlyAdded: what was there is there in the same order, and without additions nothing is different.
func checkOnlyAdded(t *testing.T, in, out []byte, report Report) {
	t.Helper()
	rest := out
	for _, b := range in {
		at := bytes.IndexByte(rest, b)
		if at < 0 {
			t.Fatalf("something was taken away from %q in %q", in, out)
		}
		rest = rest[at+1:]
	}
	if !report.Changed() && !bytes.Equal(in, out) {
		t.Errorf("nothing was added to %q, and it is now %q", in, out)
	}
}

// checkAgain: converting what was converted adds nothing, and leaves the same to a person.
func checkAgain(t *testing.T, out []byte, report Report, o Options) {
	t.Helper()
	again, second, err := Convert(out, o)
	if err != nil {
		t.Fatalf("what was converted cannot be read: %v\n%s", err, out)
	}
	if second.Changed() || !bytes.Equal(out, again) {
		t.Errorf("converting again changes it: %s", cmp.Diff(string(out), string(again)))
	}
	if first, now := report.Count(NeedsPerson), second.Count(NeedsPerson); first != now {
		t.Errorf("%d entries need a person, and then %d", first, now)
	}
}

func TestConvertRefuses(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"not YAML":    {"a: b\n---\na: b\nc: [\n", "document 2, line 4: did not find expected node content: correct the YAML"},
		"a template":  {"{{ if .Values.mesh }}\nkind: MeshTimeout\n{{ end }}\n", "document 1, line 1: did not find expected <document start>: correct the YAML"},
		"two in one":  {"{a: b}\n{c: d}\n", "document 1, line 1: did not find expected <document start>: correct the YAML"},
		"no encoding": {"a: \xff\n", "document 1, line 1: invalid leading UTF-8 octet: correct the YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Convert([]byte(c.in), Options{})
			if err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestConvertLeavesAlone(t *testing.T) {
	for name, in := range map[string]string{
		"nothing":        "",
		"a comment":      "# nothing\n---\n\n---\n",
		"directives":     "%YAML 1.1\n---\na: b\n...\n%YAML 1.1\n---\nc: d\n",
		"an end":         "a: b\n...\nc: d\n",
		"text":           "--- hello\n",
		"a list":         "- a\n- b\n",
		"other versions": "apiVersion: other.io/v1\nkind: MeshTimeout\nspec: {to: [{targetRef: {kind: MeshService, name: a_b_svc_1}, default: {connectionTimeout: 1s}}]}\n",
		"no entries":     "apiVersion: kuma.io/v1alpha1\nkind: MeshTimeout\nspec: {to: none}\n",
		"odd entries":    "apiVersion: kuma.io/v1alpha1\nkind: MeshTimeout\nspec: {to: [a, [b], {targetRef: [c]}, {targetRef: {kind: [d]}}]}\n",
		"windows":        "a: b\r\n---\r\nc: d\r\n",
		"loops":          "a: &a\n  apiVersion: v1\n  kind: List\n  items: [*a]\n",
	} {
		t.Run(name, func(t *testing.T) {
			out, report, err := Convert([]byte(in), Options{})
			if err != nil || string(out) != in || len(report.Findings) > 0 {
				t.Errorf("%q, %v, %v", out, report, err)
			}
		})
	}
}

func TestConvertKeepsLineEndings(t *testing.T) {
	in := "apiVersion: kuma.io/v1alpha1\nkind: MeshTimeout\nspec:\n  to:\n  - targetRef: {kind: MeshService, name: a_b_svc_1}\n    default: {connectionTimeout: 1s}\n"
	out, _, err := Convert([]byte(strings.ReplaceAll(in, "\n", "\r\n")), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if lines, endings := bytes.Count(out, []byte("\n")), bytes.Count(out, []byte("\r\n")); lines != endings || lines < 12 {
		t.Errorf("%d of %d lines end as they should: %q", endings, lines, out)
	}
}
