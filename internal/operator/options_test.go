package operator

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func TestValidate(t *testing.T) {
	cases := map[string]struct {
		args string
		want string
	}{
		"defaults":                             {"", ""},
		"a known passage":                      {"--passages=revision", ""},
		"an unknown passage":                   {"--passages=revision,flight", `unknown passage "flight": the known ones are revision, adoption, rollout`},
		"an empty passage":                     {"--passages=revision,,", `unknown passage "": the known ones are revision, adoption, rollout`},
		"everything off":                       {"--metrics-bind-address=0 --health-probe-bind-address=0", ""},
		"all interfaces":                       {"--metrics-bind-address=:8443 --health-probe-bind-address=:8081", ""},
		"an address without a port":            {"--metrics-bind-address=8443", `--metrics-bind-address "8443" is not HOST:PORT`},
		"a probe address without a port":       {"--health-probe-bind-address=localhost", `--health-probe-bind-address "localhost" is not HOST:PORT`},
		"a port out of range":                  {"--metrics-bind-address=:65536", `--metrics-bind-address ":65536" has no port from 0 to 65535`},
		"a port below zero":                    {"--metrics-bind-address=:-1", `--metrics-bind-address ":-1" has no port from 0 to 65535`},
		"a port that is a name":                {"--metrics-bind-address=:https", `--metrics-bind-address ":https" has no port from 0 to 65535`},
		"a port that is empty":                 {"--metrics-bind-address=127.0.0.1:", `--metrics-bind-address "127.0.0.1:" has no port from 0 to 65535`},
		"a probe port out of range":            {"--health-probe-bind-address=127.0.0.1:70000", `--health-probe-bind-address "127.0.0.1:70000" has no port from 0 to 65535`},
		"a probe port that is a name":          {"--health-probe-bind-address=127.0.0.1:probes", `--health-probe-bind-address "127.0.0.1:probes" has no port from 0 to 65535`},
		"plain metrics on a port out of range": {"--metrics-insecure-bind-address=127.0.0.1:65536", "has no port from 0 to 65535"},
		"the highest port":                     {"--metrics-bind-address=[::]:65535", ""},
		"traces":                               {"--tracing-endpoint=http://127.0.0.1:4317 --tracing-ratio=0.5", ""},
		"traces to no URL":                     {"--tracing-endpoint=collector:4317", `--tracing-endpoint "collector:4317" is not a URL`},
		"more traces than there are":           {"--tracing-ratio=2", "--tracing-ratio 2 is not between 0 and 1"},
		"plain metrics on loopback":            {"--metrics-insecure-bind-address=127.0.0.1:0", ""},
		"plain metrics on localhost":           {"--metrics-insecure-bind-address=localhost:8080", ""},
		"plain metrics on IPv6 loopback":       {"--metrics-insecure-bind-address=[::1]:8080", ""},
		"plain metrics on all interfaces":      {"--metrics-insecure-bind-address=:8080", "is not a loopback address"},
		"plain metrics on 0.0.0.0":             {"--metrics-insecure-bind-address=0.0.0.0:8080", "is not a loopback address"},
		"plain metrics on a name":              {"--metrics-insecure-bind-address=metrics.example:80", "is not a loopback address"},
		"plain metrics without a port":         {"--metrics-insecure-bind-address=127.0.0.1", "is not HOST:PORT"},
		"an unknown log format":                {"--log-format=xml", `--log-format "xml" is not one of json, text`},
		"an unknown log level":                 {"--log-level=loud", `--log-level "loud" is not one of debug, info, warn, error`},
		"a long lease":                         {"--leader-election-lease-duration=1m", ""},
		"a lease too short to be renewed":      {"--leader-election-lease-duration=1s", "--leader-election-lease-duration 1s is shorter than 3s"},
		"an environmentd elsewhere":            {"--environmentd-url=http://127.0.0.1:{{.Generation}}", ""},
		"an environmentd of no known field":    {"--environmentd-url=http://{{.Port}}", "--environmentd-url has .Name, .Namespace, .ResourceID and .Generation only"},
		"an environmentd that is no template":  {"--environmentd-url=http://{{.Name", "is not a Go template"},
		"an environmentd that is slow":         {"--environmentd-timeout=1m", ""},
		"an environmentd without time":         {"--environmentd-timeout=-1s", "--environmentd-timeout -1s is negative"},
		"an environmentd that is no URL":       {"--environmentd-url={{.Name}}:6878", "which is not http://HOST or https://HOST"},
		"everything that is wrong is told":     {"--log-format=xml --passages=x", "unknown passage"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			options := DefaultOptions()
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			options.AddFlags(flags)
			if err := flags.Parse(strings.Fields(c.args)); err != nil {
				t.Fatal(err)
			}
			err := options.Validate()
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && err == nil:
				t.Error("accepted")
			case c.want != "" && !strings.Contains(err.Error(), c.want):
				t.Errorf("got %q, want %q in it", err, c.want)
			}
		})
	}
}

func TestSelectPassages(t *testing.T) {
	known := []Passage{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	cases := map[string]struct {
		asked []string
		want  []string
	}{
		"none asked for means all":        {nil, []string{"a", "b", "c"}},
		"the order is theirs, not ours":   {[]string{"c", "a"}, []string{"a", "c"}},
		"asked for twice, it is run once": {[]string{"b", "b"}, []string{"b"}},
		"one":                             {[]string{"b"}, []string{"b"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			selected, err := selectPassages(known, c.asked)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, p := range selected {
				names = append(names, p.Name)
			}
			if diff := cmp.Diff(c.want, names); diff != "" {
				t.Error(diff)
			}
		})
	}
}
