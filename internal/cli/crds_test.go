package cli

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/crds"
)

const somePEM = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"

func TestCRDsUsage(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "absent"))
	text := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(text, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		args string
		want string
	}{
		"a CRD of somebody else":          {"crds migrate boats.harbour.test", "boats.harbour.test is not a CRD of Fairlead's"},
		"to install one of theirs":        {"crds install boats.harbour.test", "boats.harbour.test is not a CRD of Fairlead's"},
		"no speed at all":                 {"crds migrate --rate 0", "--rate 0 is not more than 0"},
		"a Service without its authority": {"crds install --webhook-service a/b:443", "webhook-ca-file"},
		"a Service without a port":        {"crds print --webhook-service a/b --webhook-ca-file " + text, `--webhook-service: "a/b" is not NAMESPACE/NAME:PORT`},
		"an authority that is none":       {"crds print --webhook-service a/b:443 --webhook-ca-file " + text, "there is no certificate in PEM in " + text},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(strings.Fields(c.args)...)
			if got.code != console.ExitUsage || !strings.Contains(got.err, c.want) {
				t.Errorf("exit code %d, %q, want %q", got.code, got.err, c.want)
			}
		})
	}
}

func TestCRDsPrintConversion(t *testing.T) {
	authority := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(authority, []byte(somePEM), 0o600); err != nil {
		t.Fatal(err)
	}
	plain := run("crds", "print")
	if strings.Contains(plain.out, "strategy: Webhook") || strings.Count(plain.out, "served: false") != 1 {
		t.Errorf("without a webhook, one version is not to be served:\n%s", grep(plain.out, "served:"))
	}
	got := run("crds", "print", "--webhook-service", "fairlead/fairlead-webhook:443", "--webhook-ca-file", authority)
	if got.code != console.ExitOK || strings.Contains(got.out, "served: false") {
		t.Errorf("exit code %d, %s\n%s", got.code, got.err, grep(got.out, "served:"))
	}
	for _, want := range []string{
		"caBundle: " + base64.StdEncoding.EncodeToString([]byte(somePEM)),
		"name: fairlead-webhook", "namespace: fairlead", "path: " + crds.ConversionPath, "port: 443",
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is not printed", want)
		}
	}
}

func TestPrintMigrations(t *testing.T) {
	var progress, result bytes.Buffer
	half := crds.Migration{Name: "boats.harbour.test", From: []string{"v1"}, To: "v2", Rewritten: 499, Failed: 1, Remaining: 700}
	printMigrationProgress(&progress, half)
	printMigrationProgress(&progress, crds.Migration{Name: "crews.harbour.test", To: "v1", Done: true})
	if want := "boats.harbour.test: 500 of 1200 objects from v1 to v2\n"; progress.String() != want {
		t.Errorf("progress is %q", progress.String())
	}
	printMigrations(&result, []crds.Migration{
		half,
		{Name: "crews.harbour.test", To: "v1", Done: true},
		{Name: "sails.harbour.test", From: []string{"v1"}, To: "v2", Rewritten: 3, Done: true},
	})
	want := `CRD                  FROM   TO   REWRITTEN   FAILED   OUTCOME
boats.harbour.test   v1     v2   499         1        Left behind
crews.harbour.test   -      v1   0           0        Nothing to do
sails.harbour.test   v1     v2   3           0        Migrated
`
	if result.String() != want {
		t.Errorf("result is\n%s", result.String())
	}
}

func grep(text, what string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, what) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}
