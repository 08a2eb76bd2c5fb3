package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/internal/cli/console"
)

const (
	slowPolicy = `apiVersion: kuma.io/v1alpha1
kind: MeshTimeout
metadata: {name: slow, namespace: kuma-system}
spec:
  to:
  - targetRef: {kind: MeshService, name: demo-app_kuma-demo_svc_5000} # reports
    default: {connectionTimeout: 9s}
`
	slowPolicyConverted = slowPolicy + `  - targetRef:
      kind: MeshService
      labels:
        kuma.io/display-name: demo-app
        kuma.io/namespace: kuma-demo
      sectionName: "5000" # check: if port 5000 has a name, write the name
    default: {connectionTimeout: 9s}
`
	slowPolicyNamed = slowPolicy + `  - targetRef:
      kind: MeshService
      labels:
        kuma.io/display-name: demo-app
        kuma.io/namespace: kuma-demo
      sectionName: "http"
    default: {connectionTimeout: 9s}
`
	demoService     = "apiVersion: v1\nkind: Service\nmetadata: {name: demo-app, namespace: kuma-demo}\nspec: {ports: [{port: 5000, name: http}]}\n"
	universalPolicy = "type: MeshTimeout\nname: slow\nspec: {to: [{targetRef: {kind: MeshService, name: backend}, default: {connectionTimeout: 1s}}]}\n"
)

// policyFiles are in a directory, beside others that are none of convert's business. There is no cluster.
func policyFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "absent"))
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func contentOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestConvertPrints(t *testing.T) {
	dir := policyFiles(t, map[string]string{"a.yaml": slowPolicy, "universal.yaml": universalPolicy})
	file := filepath.Join(dir, "a.yaml")
	got := run("convert", "-f", file)
	if got.code != console.ExitOK || got.out != slowPolicyConverted || !strings.HasPrefix(got.err, "1 entry added (1 with a sectionName to check), 0 for you to look at.\n") ||
		!strings.Contains(got.err, "were not looked up in a cluster") || !strings.Contains(got.err, "added, check") {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff(slowPolicy, contentOf(t, file)); diff != "" {
		t.Errorf("the file was written: %s", diff)
	}

	var out, errs bytes.Buffer
	code := Main(Streams{In: strings.NewReader(slowPolicy), Out: &out, Err: &errs}, []string{"convert", "-f", "-"})
	if code != console.ExitOK || out.String() != slowPolicyConverted || !strings.Contains(errs.String(), "standard input:6") {
		t.Error(code, out.String(), errs.String())
	}

	got = run("convert", "-f", filepath.Join(dir, "universal.yaml"))
	if got.code != console.ExitOK || got.out != universalPolicy || !strings.Contains(got.err, "0 entries added, 1 for you to look at.") {
		t.Errorf("%+v", got)
	}
	got = run("convert", "-f", filepath.Join(dir, "universal.yaml"), "--port", "8080")
	if got.code != console.ExitOK || !strings.Contains(got.out, `sectionName: "8080"`) {
		t.Errorf("%+v", got)
	}
}

func TestConvertChecksAndWrites(t *testing.T) {
	dir := policyFiles(t, map[string]string{
		"a.yaml": slowPolicy, "more/b.yml": slowPolicy, "more/readme.md": "a: [\n", ".git/c.yaml": "a: [\n", "more/.d.yaml": "a: [\n",
	})
	link := filepath.Join(dir, "link.yaml")
	if err := os.Symlink(filepath.Join("more", "b.yml"), link); err != nil {
		t.Fatal(err)
	}
	if got := run("convert", "-f", dir, "--check"); got.code != console.ExitUnfinished || !strings.HasPrefix(got.out, "3 entries to add (3 with a sectionName to check), 0 for you to look at.\n") || got.err != "" {
		t.Errorf("%+v", got)
	}
	if got := contentOf(t, filepath.Join(dir, "a.yaml")); got != slowPolicy {
		t.Errorf("--check has written %s", got)
	}
	if got := run("convert", "-f", dir, "-w"); got.code != console.ExitOK || !strings.HasPrefix(got.out, "3 entries added (3 with a sectionName to check), 0 for you to look at.\n") {
		t.Errorf("%+v", got)
	}
	for _, name := range []string{"a.yaml", "more/b.yml"} {
		path := filepath.Join(dir, name)
		if diff := cmp.Diff(slowPolicyConverted, contentOf(t, path)); diff != "" {
			t.Error(name, diff)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode() != 0o640 {
			t.Error(name, info.Mode(), err)
		}
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link is none any more", err)
	}
	if got := run("convert", "-f", dir, "--check"); got.code != console.ExitOK || got.out != "0 entries to add, 0 for you to look at.\n" {
		t.Errorf("%+v", got)
	}
}

func TestConvertForPrograms(t *testing.T) {
	dir := policyFiles(t, map[string]string{"a.yaml": slowPolicy, "b.yaml": "kind: Service\n"})
	got := run("convert", "-f", dir, "--check", "-o", "json")
	if got.code != console.ExitUnfinished {
		t.Errorf("exit code %d: %s", got.code, got.err)
	}
	var files []map[string]any
	if err := json.Unmarshal([]byte(got.out), &files); err != nil {
		t.Fatal(err, got.out)
	}
	want := []map[string]any{
		{"file": filepath.Join(dir, "a.yaml"), "changed": true, "findings": []any{map[string]any{
			"document": 1.0, "line": 6.0, "kind": "MeshTimeout", "policy": "kuma-system/slow", "field": "spec.to[0].targetRef",
			"service": "demo-app_kuma-demo_svc_5000", "action": "Added", "section": "5000", "unchecked": true,
			"why": "an entry for section 5000 of MeshService demo-app; check the sectionName: 5000 is right only if the port has no name, and no cluster was asked",
		}}},
		{"file": filepath.Join(dir, "b.yaml"), "changed": false, "findings": []any{}},
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Error(diff)
	}
}

func TestConvertWithServices(t *testing.T) {
	dir := policyFiles(t, map[string]string{
		"policies/a.yaml": slowPolicy, "services/a.yaml": demoService, "services/readme.md": "", "bare.yaml": strings.Replace(demoService, ", namespace: kuma-demo", "", 1),
		"other.yaml": strings.Replace(demoService, "name: demo-app", "name: cart", 1), "none.yaml": slowPolicy, "broken.yaml": "a: [\n",
	})
	at := func(name string) string { return filepath.Join(dir, name) }
	policies := at("policies/a.yaml")
	for name, args := range map[string][]string{
		"of a file": {"--services", at("services/a.yaml")}, "of a directory": {"--services", at("services")},
		"of several": {"--services", at("other.yaml"), "--services", at("services")}, "of a namespace": {"--services", at("bare.yaml"), "-n", "kuma-demo"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(append([]string{"convert", "-f", policies}, args...)...)
			if got.code != console.ExitOK || got.out != slowPolicyNamed || !strings.HasPrefix(got.err, "1 entry added, 0 for you to look at.\n") || strings.Contains(got.err, "check") {
				t.Errorf("%+v", got)
			}
		})
	}
	got := run("convert", "-f", policies, "--services", at("other.yaml"))
	if got.code != console.ExitOK || got.out != slowPolicyConverted || !strings.Contains(strings.Join(strings.Fields(got.err), " "), "and --services has none of that name") {
		t.Errorf("%+v", got)
	}
	for name, c := range map[string]struct {
		file string
		code int
		want string
	}{
		"none":         {at("none.yaml"), console.ExitFailed, "there is no Service and no MeshService in " + at("none.yaml")},
		"no namespace": {at("bare.yaml"), console.ExitFailed, "read " + at("bare.yaml") + ": document 1, line 1: Service demo-app has no namespace: write it, or give -n"},
		"not YAML":     {at("broken.yaml"), console.ExitFailed, "read " + at("broken.yaml") + ": document 1, line 1: "},
		"absent":       {at("absent"), console.ExitFailed, "no such file or directory"},
		"nothing":      {"", console.ExitUsage, "--services names no file"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run("convert", "-f", policies, "--services", c.file)
			if got.code != c.code || got.out != "" || !strings.Contains(got.err, c.want) {
				t.Errorf("%+v, want %d and %q", got, c.code, c.want)
			}
		})
	}
}

// A cluster that a flag names has to answer; any other one need not.
func TestConvertAsksTheCluster(t *testing.T) {
	dir := policyFiles(t, map[string]string{"a.yaml": slowPolicy, "b.yaml": "kind: Service\n", "kubeconfig": unreachable})
	policies, config := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "kubeconfig")
	if got := run("convert", "-f", policies, "--kubeconfig", config); got.code != console.ExitFailed || got.out != "" || !strings.Contains(got.err, "reach the API server http://127.0.0.1:1") {
		t.Errorf("%+v", got)
	}
	// Nothing is to be looked up.
	if got := run("convert", "-f", filepath.Join(dir, "b.yaml"), "--kubeconfig", config); got.code != console.ExitOK {
		t.Errorf("%+v", got)
	}
	t.Setenv("KUBECONFIG", config)
	got := run("convert", "-f", policies)
	if got.code != console.ExitOK || got.out != slowPolicyConverted || !strings.Contains(strings.Join(strings.Fields(got.err), " "), "were not looked up in a cluster: reach the API server http://127.0.0.1:1") {
		t.Errorf("%+v", got)
	}
}

const unreachable = `apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: a, context: {cluster: a}}]
current-context: a
`

func TestConvertUnknownKinds(t *testing.T) {
	unknown := strings.Replace(slowPolicy, "MeshTimeout", "MeshTeleport", 1)
	dir := policyFiles(t, map[string]string{"a.yaml": slowPolicy, "b.yaml": unknown, "c.yaml": "apiVersion: kuma.io/v1alpha1\nkind: TrafficRoute\nmetadata: {name: a}\n"})
	const message = "error: convert does not know MeshTeleport, TrafficRoute: look for values of kuma.io/service there yourself\n"
	for _, flag := range []string{"--check", "-w"} {
		got := run("convert", "-f", dir, flag)
		if got.code != console.ExitFailed || got.err != message || !strings.Contains(got.out, "2 for you to look at.") || !strings.Contains(got.out, "MeshTeleport kuma-system/slow") {
			t.Errorf("%s: %+v", flag, got)
		}
	}
	if got := contentOf(t, filepath.Join(dir, "a.yaml")); got != slowPolicyConverted {
		t.Errorf("the others were not converted: %s", got)
	}
	if got := contentOf(t, filepath.Join(dir, "b.yaml")); got != unknown {
		t.Errorf("it was changed: %s", got)
	}
}

// An entry for the MeshService itself takes precedence, in whichever file it is.
func TestConvertKeepsPrecedence(t *testing.T) {
	dir := policyFiles(t, map[string]string{"a.yaml": slowPolicy, "b.yaml": `apiVersion: kuma.io/v1alpha1
kind: MeshTimeout
metadata: {name: whole, namespace: kuma-system}
spec:
  to:
  - targetRef: {kind: MeshService, name: demo-app, namespace: kuma-demo}
    default: {connectionTimeout: 1s}
`})
	got := run("convert", "-f", dir, "--check")
	if got.code != console.ExitOK || !strings.HasPrefix(got.out, "0 entries to add, 1 for you to look at.\n") || !strings.Contains(got.out, "spec.to[0] of kuma-system/whole") {
		t.Errorf("%+v", got)
	}
	if got := run("convert", "-f", filepath.Join(dir, "a.yaml"), "--check"); got.code != console.ExitUnfinished {
		t.Errorf("%+v", got)
	}
}

func TestConvertRefuses(t *testing.T) {
	dir := policyFiles(t, map[string]string{"a.yaml": slowPolicy, "b.yaml": "a: b\n---\nc: [\n", "empty/readme.md": "", "two/a.yaml": "", "two/b.yaml": ""})
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no file":          {nil, console.ExitUsage, `required flag(s) "filename" not set`},
		"an empty name":    {[]string{"-f", ""}, console.ExitUsage, "-f names no file"},
		"both":             {[]string{"-f", dir, "-w", "--check"}, console.ExitUsage, "give one of them"},
		"the input":        {[]string{"-f", "-", "-w"}, console.ExitUsage, "-w cannot write the standard input"},
		"the input twice":  {[]string{"-f", "-", "--services", "-"}, console.ExitUsage, "-f and --services cannot both read the standard input"},
		"a port":           {[]string{"-f", dir, "--port", "65536"}, console.ExitUsage, "--port"},
		"several to print": {[]string{"-f", at("two")}, console.ExitUsage, "there are 2 files: give -w to write them"},
		"an absent file":   {[]string{"-f", at("absent")}, console.ExitFailed, "absent: no such file or directory"},
		"nothing there":    {[]string{"-f", at("empty")}, console.ExitFailed, "there is no file of YAML or JSON in"},
		"not YAML":         {[]string{"-f", dir, "-w"}, console.ExitFailed, "convert " + at("b.yaml") + ": document 2, line 3: did not find expected node content"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(append([]string{"convert"}, c.args...)...)
			if got.code != c.code || !strings.HasPrefix(got.err, "error: ") || strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, c.want) || got.out != "" {
				t.Errorf("%+v, want %d and %q", got, c.code, c.want)
			}
		})
	}
	if got := contentOf(t, at("a.yaml")); got != slowPolicy {
		t.Errorf("one was written although another cannot be read: %s", got)
	}
}
