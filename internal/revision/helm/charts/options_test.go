package charts

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestValidate(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	put(t, file, "no certificate")
	cases := map[string]struct {
		args string
		want string
	}{
		"nothing set":                   {"", ""},
		"a directory":                   {"--chart-dir=DIR", ""},
		"a repository":                  {"--chart-repository=https://charts.example/istio/", ""},
		"a registry":                    {"--chart-repository=oci://charts.example:5000/istio", ""},
		"a registry without a path":     {"--chart-repository=oci://charts.example", ""},
		"plain http on this machine":    {"--chart-repository=http://127.0.0.1:8080/charts", ""},
		"plain http on localhost":       {"--chart-repository=http://localhost:8080", ""},
		"plain http on IPv6":            {"--chart-repository=http://[::1]:8080", ""},
		"plain http elsewhere":          {"--chart-repository=http://charts.example/istio", "for this machine only: use https://charts.example/istio"},
		"plain http that looks like it": {"--chart-repository=http://localhost.example/istio", "for this machine only"},
		"both":                          {"--chart-dir=DIR --chart-repository=oci://charts.example/istio", "leave one of the two out"},
		"both, one the default":         {"--chart-dir=DIR --chart-repository=" + DefaultRepository, "leave one of the two out"},
		"no directory":                  {"--chart-dir=DIR/none", "--chart-dir: stat DIR/none: no such file or directory; name a directory"},
		"a file for a directory":        {"--chart-dir=DIR/file", "--chart-dir: DIR/file is not a directory; name one that"},
		"another scheme":                {"--chart-repository=ftp://charts.example/istio", `"ftp://charts.example/istio" must start with https://`},
		"no scheme":                     {"--chart-repository=charts.example/istio", "is not a URL such as oci://"},
		"a path":                        {"--chart-repository=/charts", "is not a URL such as oci://"},
		"no host":                       {"--chart-repository=https:///charts", "is not a URL such as oci://"},
		"no URL":                        {"--chart-repository=https://%zz", "is not a URL such as oci://"},
		"a question":                    {"--chart-repository=https://charts.example/?token=x", "is not a URL such as oci://"},
		"a tag":                         {"--chart-repository=oci://charts.example/istio/istiod:1.24.0", "is not the path of charts in a registry"},
		"capitals":                      {"--chart-repository=oci://charts.example/Istio", "is not the path of charts in a registry"},
		"a password":                    {"--chart-repository=https://captain:secret@charts.example", "--chart-repository of charts.example has credentials"},
		"no CA file":                    {"--chart-ca-file=DIR/none", "--chart-ca-file: open DIR/none: no such file"},
		"a CA file without a CA":        {"--chart-ca-file=DIR/file", "--chart-ca-file: DIR/file holds no certificate"},
		"no registry config":            {"--chart-registry-config=DIR/none", "--chart-registry-config: stat DIR/none: no such file"},
		"a directory of configs":        {"--chart-registry-config=DIR", "--chart-registry-config: DIR is not a file"},
		"everything that is wrong":      {"--chart-registry-config=DIR --chart-ca-file=DIR/none --chart-repository=x", "--chart-ca-file"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var options Options
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			options.AddFlags(flags)
			if err := flags.Parse(strings.Fields(strings.ReplaceAll(c.args, "DIR", dir))); err != nil {
				t.Fatal(err)
			}
			err := options.Validate()
			if _, opened := New(options); (err == nil) != (opened == nil) {
				t.Errorf("validated: %v, opened: %v", err, opened)
			}
			if c.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			wantError(t, err, strings.ReplaceAll(c.want, "DIR", dir))
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("a secret is told: %v", err)
			}
		})
	}
}

func TestNoCacheDir(t *testing.T) {
	for _, variable := range []string{"HOME", "XDG_CACHE_HOME"} {
		t.Setenv(variable, "")
	}
	wantError(t, Options{}.Validate(), "nowhere to keep charts", "set --chart-cache-dir")
	if err := (Options{CacheDir: "here"}).Validate(); err != nil {
		t.Error(err)
	}
	if err := (Options{Dir: t.TempDir()}).Validate(); err != nil {
		t.Errorf("a directory needs no cache: %v", err)
	}
}

func TestString(t *testing.T) {
	dir := t.TempDir()
	cases := map[string]struct {
		options Options
		want    string
	}{
		"nothing set":  {Options{}, "registry " + DefaultRepository},
		"a directory":  {Options{Dir: dir + "/x/.."}, "directory " + dir},
		"a repository": {Options{Repository: "https://charts.example/istio/"}, "repository https://charts.example/istio"},
		"a registry":   {Options{Repository: "oci://charts.example:5000/istio/"}, "registry oci://charts.example:5000/istio"},
	}
	put(t, filepath.Join(dir, "x", "y"), "")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			source, err := New(c.options)
			if err != nil {
				t.Fatal(err)
			}
			if got := source.String(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
