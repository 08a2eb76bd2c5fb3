package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/kind"
	"github.com/fairlead/fairlead/internal/cli/kind/revision"
	"github.com/fairlead/fairlead/internal/cli/versions"
	"github.com/fairlead/fairlead/internal/version"
)

type result struct {
	code     int
	out, err string
}

func run(args ...string) result {
	var out, errs bytes.Buffer
	code := Main(Streams{Out: &out, Err: &errs}, args)
	return result{code, out.String(), errs.String()}
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUsageErrors(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "absent"))
	cases := map[string]struct {
		args string
		want string
	}{
		"unknown command":          {"fly", `unknown command "fly" for "fairlead"`},
		"unknown crds command":     {"crds fly", `unknown command "fly" for "fairlead crds"`},
		"unknown shell":            {"completion fly", `unknown command "fly" for "fairlead completion"`},
		"unknown flag":             {"plan istio default --loud", "unknown flag: --loud; usage: `fairlead plan TYPE NAME`, such as `fairlead plan istio default`"},
		"unknown output":           {"plan istio default -o xml", "must be one of json|yaml|wide"},
		"wide is not for programs": {"version -o wide", "must be one of json|yaml"},
		"no arguments":             {"plan", "fairlead plan takes TYPE and NAME, such as `fairlead plan istio default`, but got \"\""},
		"no name":                  {"status istio", `but got "istio"`},
		"too many arguments":       {"pause istio a b", `but got "istio a b"`},
		"nobody to ask":            {"promote mzs a", "fairlead promote asks before it does anything, and there is no terminal to ask at: give --yes"},
		"nobody to ask, back":      {"abort mzs a", "there is no terminal to ask at: give --yes"},
		"nothing to promote":       {"promote mzs --yes", "such as `fairlead promote mzs production -n shop`, but got \"mzs\""},
		"adopt from nowhere":       {"adopt -n shop", "required flag(s) \"cluster\" not set; usage: `fairlead adopt [TYPE NAME...] --cluster NAME -n NAMESPACE`, such as `fairlead adopt --cluster west -n shop`"},
		"adopt by a type":          {"adopt deployments --cluster west", "fairlead adopt takes TYPE NAME... or TYPE/NAME..., but got \"deployments\"; for all resources of a kind, give --kind; usage: `fairlead adopt [TYPE NAME...] --cluster NAME -n NAMESPACE`, such as"},
		"adopt by no name":         {"adopt deployment/ --cluster west", "but got \"deployment/\""},
		"adopt by two ways":        {"adopt deployment/cart checkout --cluster west", "but got \"deployment/cart checkout\""},
		"adopt by two other ways":  {"adopt deployment cart service/cart --cluster west", "but got \"deployment cart service/cart\""},
		"adopt by name and kind":   {"adopt deployment/cart --cluster west --kind services --yes", "--kind and -l select resources, and deployment/cart names them: leave out one of the two"},
		"adopt by name and label":  {"adopt deployment cart --cluster west -l app=cart --yes", "--kind and -l select resources, and deployment cart names them"},
		"join nothing":             {"join", "fairlead join takes NAME, but got \"\"; usage: `fairlead join NAME --member-kubeconfig FILE`, such as `fairlead join west --member-kubeconfig west.kubeconfig`"},
		"join by no kubeconfig":    {"join west", "required flag(s) \"member-kubeconfig\" not set; usage: `fairlead join NAME"},
		"unjoin two":               {"unjoin a b", "fairlead unjoin takes NAME, but got \"a b\"; usage: `fairlead unjoin NAME`"},
		"adopt by nothing":         {"adopt --cluster west -l a=b=c --yes", "-l a=b=c is not a selector"},
		"adopt without asking":     {"adopt --cluster west", "there is no terminal to ask at: give --yes"},
		"a mode that is none":      {"plan mesh default --mode Sometimes", "--mode Sometimes is none of Disabled, Everywhere, ReachableBackendRefs and Exclusive"},
		"all consumers and one":    {"plan mesh default --switched --consumer a/b/c", "leave out --consumer, or --switched"},
		"no such environment":      {"plan mesh default --mesh-environment moon", "--mesh-environment moon is neither kubernetes nor universal"},
		"where, for no reason":     {"status mesh default --mesh-zone east", "--mesh-zone is only for --policies"},
		"version takes none":       {"version now", `fairlead version takes no arguments, but got "now"`},
		"unknown passage":          {"operator --passages=flight", `unknown passage "flight": the known ones are revision`},
		"open plain metrics":       {"operator --metrics-insecure-bind-address=:8080", "is not a loopback address"},
		"bad log level":            {"operator --log-level=loud", "is not one of debug, info, warn, error"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(strings.Fields(c.args)...)
			if got.code != console.ExitUsage {
				t.Errorf("exit code %d", got.code)
			}
			if !strings.HasPrefix(got.err, "error: ") || strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, c.want) {
				t.Errorf("stderr is %q, want one line with %q", got.err, c.want)
			}
			if got.out != "" {
				t.Errorf("stdout is %q", got.out)
			}
		})
	}
}

func TestKubeconfigErrors(t *testing.T) {
	const nobody = "127.0.0.1:1" // a port that is given to no listener
	kubeconfig := func(server string) string {
		return `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: k, cluster: {server: "` + server + `"}}], ` +
			`users: [{name: u, user: {}}], contexts: [{name: c, context: {cluster: k, user: u}}]}`
	}
	broken := writeFile(t, "clusters: [\n")
	unreachable := writeFile(t, kubeconfig("https://"+nobody))
	absent := filepath.Join(t.TempDir(), "absent")
	t.Setenv("KUBECONFIG", absent)

	cases := map[string]struct {
		args []string
		want string
	}{
		"does not parse":           {[]string{"plan", "istio", "default", "--kubeconfig", broken}, broken},
		"does not parse, operator": {[]string{"operator", "--kubeconfig", broken}, broken},
		"does not parse, CRDs":     {[]string{"crds", "install", "--kubeconfig", broken}, broken},
		"does not exist":           {[]string{"plan", "istio", "default", "--kubeconfig", absent}, "--kubeconfig names " + absent + ", which does not exist"},
		"of a member":              {[]string{"join", "west", "--kubeconfig", unreachable, "--member-kubeconfig", absent}, "--member-kubeconfig names " + absent + ", which does not exist"},
		"not where it should be":   {[]string{"plan", "istio", "default"}, "no cluster to talk to: $KUBECONFIG names " + absent + ", which does not exist; name the kubeconfig of a cluster with --kubeconfig or $KUBECONFIG"},
		"none at all, operator":    {[]string{"operator"}, "no cluster to talk to"},
		"no such context":          {[]string{"plan", "istio", "default", "--kubeconfig", unreachable, "--context", "moon"}, `context "moon" does not exist`},
		"nobody listens":           {[]string{"plan", "istio", "default", "--kubeconfig", unreachable}, "reach the API server https://" + nobody},
		"nobody listens, CRDs":     {[]string{"crds", "install", "--kubeconfig", unreachable}, nobody},
		"nobody listens, pause":    {[]string{"pause", "istio", "default", "--kubeconfig", unreachable}, nobody},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(c.args...)
			if got.code != console.ExitFailed {
				t.Errorf("exit code %d", got.code)
			}
			if !strings.HasPrefix(got.err, "error: ") || strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, c.want) {
				t.Errorf("stderr is %q, want one line with %q", got.err, c.want)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "absent"))
	want := version.Get()
	got := run("version")
	if got.code != console.ExitOK || !strings.HasPrefix(got.out, "fairlead "+want.Version+" (commit ") ||
		!strings.Contains(got.out, "\noperator unknown: no cluster to talk to: ") || !strings.Contains(got.out, "\nCRDs unknown: no cluster to talk to: ") {
		t.Errorf("%+v", got)
	}
	if got := run("version", "--client"); got.code != console.ExitOK || strings.Contains(got.out, "unknown:") {
		t.Errorf("%+v", got)
	}
	for format, decode := range map[string]func([]byte, any) error{
		"json": json.Unmarshal,
		"yaml": func(text []byte, into any) error { return yaml.Unmarshal(text, into) },
	} {
		for _, args := range [][]string{{"version", "-o", format}, {"version", "--client", "-o", format}} {
			got := run(args...)
			var decoded versions.Report
			if err := decode([]byte(got.out), &decoded); err != nil || decoded.Client != want || decoded.Fits != nil || (decoded.CRDs == nil) != (len(args) == 4) {
				t.Errorf("%v: %v: %q", args, err, got.out)
			}
		}
	}
}

func TestNameAsPluginOfKubectl(t *testing.T) {
	runAs := func(program string, args ...string) string {
		var out, errs bytes.Buffer
		MainAs(program, Streams{Out: &out, Err: &errs}, args)
		return out.String() + errs.String()
	}
	for program, want := range map[string]string{
		"fairlead": "fairlead", "./bin/fairlead": "fairlead", "/opt/krew/bin/kubectl-fairlead": "kubectl fairlead", "kubectl-fairlead.exe": "kubectl fairlead",
	} {
		for args, text := range map[string]string{
			"plan --help": "Usage:\n  " + want + " plan TYPE NAME [flags]\n\nExamples:\n  " + want + " plan istio default\n",
			"--help":      "\nUse \"" + want + " [command] --help\"",
			"plan":        "error: " + want + " plan takes TYPE and NAME, such as `" + want + " plan istio default`",
			"fly":         "unknown command \"fly\" for \"" + want + "\"",
			"crds --help": "Usage:\n  " + want + " crds",
		} {
			if got := runAs(program, strings.Fields(args)...); !strings.Contains(got, text) {
				t.Errorf("%s %s prints %q, want %q", program, args, got, text)
			}
		}
	}
}

func TestCompletionAndHelp(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := run("completion", shell); got.code != console.ExitOK || !strings.Contains(got.out, "fairlead") {
			t.Errorf("completion %s: exit code %d, %d bytes", shell, got.code, len(got.out))
		}
	}
	got := run("--help")
	if got.code != console.ExitOK {
		t.Errorf("help: exit code %d", got.code)
	}
	for _, command := range []string{"plan", "status", "watch", "pause", "resume", "retry", "promote", "abort", "crds", "operator", "serve-mesh", "version", "completion"} {
		if !strings.Contains(got.out, "\n  "+command+" ") {
			t.Errorf("help does not tell of %s", command)
		}
	}
	if got := run("__complete", "plan", "-o", ""); !strings.Contains(got.out, "json\nyaml\nwide\n") {
		t.Errorf("-o completes to %q", got.out)
	}
}

func TestCRDsPrint(t *testing.T) {
	got := run("crds", "print")
	if got.code != console.ExitOK || got.err != "" {
		t.Fatalf("exit code %d, %s", got.code, got.err)
	}
	for _, name := range []string{"istios.sailoperator.io", "istiorevisions.sailoperator.io", "istiorevisiontags.sailoperator.io"} {
		if !strings.Contains(got.out, "name: "+name+"\n") {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestNoPlanError(t *testing.T) {
	for want, k := range map[string]kind.Kind{
		"there is no plan to show for IstioRevision: the plan of an IstioRevision follows from the Istio that owns it: " +
			"`fairlead plan istio NAME`; `fairlead status istiorevision x` shows its progress": &revision.Kind{},
		"there is no plan to show for IstioRevisionTag: the plan of an IstioRevisionTag follows from the Istio in its spec.targetRef: " +
			"`fairlead plan istio NAME`; `fairlead status istiorevisiontag x` shows its progress": &revision.TagKind{},
	} {
		if got := noPlanError(k, k.GroupKinds()[0].Kind, "x"); got.Error() != want || console.ExitCode(got, true) != console.ExitUsage {
			t.Errorf("%v, want %s", got, want)
		}
	}
}
