package rollout_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/environmentd"
)

// command is what the owner of the environment enters.
func (e *environment) command(t testing.TB, verb string, args ...string) harness.CommandResult {
	t.Helper()
	return harness.RunCommand(t, e.Cluster, append([]string{verb, "mzs", e.resource, "-n", e.namespace}, args...)...)
}

// manifest is a file with the resource as its owner would write it.
func manifest(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "new.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// written is a manifest of the environment's name with a spec.
func written(spec string) string {
	return "apiVersion: materialize.cloud/v1alpha2\nkind: Materialize\nmetadata: {name: mz}\nspec: " + spec + "\n"
}

// planned is what `plan -o json` says.
type planned struct {
	Target  string
	Steps   []struct{ Action string }
	Rollout struct {
		RollsOut bool
		Verdict  string
		Changes  []struct {
			Field, From, To string
			RollsOut        bool
		}
	}
}

func (e *environment) plan(t testing.TB, code int, args ...string) planned {
	t.Helper()
	result := e.command(t, "plan", append(args, "-o", "json")...)
	if result.Code != code {
		t.Fatalf("plan ended with %d, want %d: %s%s", result.Code, code, result.Stdout, result.Stderr)
	}
	var p planned
	if err := json.Unmarshal([]byte(result.Stdout), &p); err != nil {
		t.Fatalf("%v:\n%s", err, result.Stdout)
	}
	return p
}

func TestPlanOfManifest(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	e := w.deployed(t, func(m *v1alpha2.Materialize) { m.Spec.PodLabels = map[string]string{"team": "shop"} })
	before := e.now(t)
	cases := map[string]struct {
		spec string
		code int
		want string
		// actions that are among the steps.
		actions []string
	}{
		"the same": {"{environmentdImageRef: materialize/environmentd:v1, backendSecretName: backend}", 0, "no rollout: nothing changed", nil},
		"replicas": {
			"{environmentdImageRef: materialize/environmentd:v1, backendSecretName: backend, balancerdReplicas: 3}", 3,
			"no rollout: only balancerdReplicas changed", []string{"ensure"},
		},
		"another image": {
			"{environmentdImageRef: materialize/environmentd:v2, backendSecretName: backend}", 3,
			"rollout: generation 2 follows generation 1, because environmentdImageRef changed",
			[]string{"request", "apply", "await", "catch up", "commit", "promote", "switch", "remove", "complete"},
		},
		"another label, besides the one that somebody else has added": {
			"{environmentdImageRef: materialize/environmentd:v1, backendSecretName: backend, podLabels: {shift: night}}", 3,
			"rollout: generation 2 follows generation 1, because podLabels[shift] changed", nil,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := e.plan(t, c.code, "-f", manifest(t, written(c.spec)))
			if p.Rollout.Verdict != c.want {
				t.Errorf("it says %q, want %q", p.Rollout.Verdict, c.want)
			}
			var actions []string
			for _, s := range p.Steps {
				if !slices.Contains(actions, s.Action) {
					actions = append(actions, s.Action)
				}
			}
			if c.actions != nil && !cmp.Equal(c.actions, actions) {
				t.Errorf("it would %v, want %v", actions, c.actions)
			}
		})
	}
	for name, c := range map[string]struct {
		text, want string
	}{
		"a field that does not exist": {
			written("{environmentdImageRef: v1, backendSecretName: backend, balancedReplicas: 3}"), `unknown field "spec.balancedReplicas"`,
		},
		"a value that is none": {
			written("{environmentdImageRef: v1, backendSecretName: backend, rolloutStrategy: Hope}"), "spec.rolloutStrategy: Unsupported value",
		},
		"another namespace": {
			strings.Replace(written("{}"), "name: mz", "name: mz, namespace: elsewhere", 1), "is of namespace elsewhere, and not of " + e.namespace,
		},
		"another name": {strings.Replace(written("{}"), "name: mz", "name: other", 1), "there is no Materialize mz in it, but other"},
	} {
		t.Run(name, func(t *testing.T) {
			result := e.command(t, "plan", "-f", manifest(t, c.text))
			if result.Code != 1 && result.Code != 2 || !strings.Contains(result.Stderr, c.want) {
				t.Errorf("it ended with %d, and nowhere is %q: %s%s", result.Code, c.want, result.Stdout, result.Stderr)
			}
		})
	}
	t.Run("one that does not exist yet", func(t *testing.T) {
		path := manifest(t, strings.Replace(written("{environmentdImageRef: v1, backendSecretName: backend}"), "name: mz", "name: other", 1))
		result := harness.RunCommand(t, e.Cluster, "plan", "mzs", "other", "-n", e.namespace, "-f", path)
		if result.Code != 3 || !strings.HasPrefix(result.Stdout, "rollout: generation 1 is the first\n") {
			t.Errorf("it ended with %d: %s%s", result.Code, result.Stdout, result.Stderr)
		}
	})
	if diff := cmp.Diff(before, e.now(t)); diff != "" {
		t.Errorf("to plan has changed something: %s", diff)
	}
}

// Who applies on the server's side takes back what the manifest no longer has.
func TestPlanOfServerSideApply(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	e := w.namespaced(t, "mz")
	object := &unstructured.Unstructured{}
	text := written("{environmentdImageRef: materialize/environmentd:v1, backendSecretName: backend, podLabels: {team: shop}}")
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetNamespace(e.namespace)
	if err := w.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("argocd")); err != nil {
		t.Fatal(err)
	}
	e.serves(t, 1, "v1")
	p := e.plan(t, 3, "-f", manifest(t, written("{environmentdImageRef: materialize/environmentd:v1, backendSecretName: backend}")))
	if want := "rollout: generation 2 follows generation 1, because podLabels[team] changed"; p.Rollout.Verdict != want {
		t.Errorf("it says %q, want %q", p.Rollout.Verdict, want)
	}
	if p := e.plan(t, 0, "-f", manifest(t, text)); p.Rollout.RollsOut {
		t.Errorf("the same manifest again: %s", p.Rollout.Verdict)
	}
	result := e.command(t, "plan", "-f", manifest(t, written("{environmentdImageRef: v2, backendSecretName: backend}")), "--field-manager", "me")
	if want := `conflict with "argocd"`; result.Code != 1 || !strings.Contains(result.Stderr, want) {
		t.Errorf("it ended with %d, and nowhere is %q: %s", result.Code, want, result.Stderr)
	}
}

func TestAbortCommand(t *testing.T) {
	t.Parallel()
	e := theWorld(t).catchingUp(t)
	watched, before := e.watch(t), e.set(t, 1)
	e.edit(t, func(m *v1alpha2.Materialize) { m.Spec.BalancerdReplicas = ptr.To[int32](3) })
	if p := e.plan(t, 3); p.Rollout.Verdict != "rollout: generation 2 follows generation 1, because environmentdImageRef changed" {
		t.Errorf("plan says %q", p.Rollout.Verdict)
	}
	if result := e.command(t, "watch", "--wait", "--timeout", "1s"); result.Code != 3 {
		t.Errorf("while it catches up, watch ended with %d: %s%s", result.Code, result.Stdout, result.Stderr)
	}
	result := e.command(t, "abort", "--yes")
	if result.Code != 0 || !strings.Contains(result.Stdout, "environmentdImageRef   materialize/environmentd:v2   materialize/environmentd:v1\n") {
		t.Fatalf("it ended with %d: %s%s", result.Code, result.Stdout, result.Stderr)
	}
	m := e.serves(t, 1, "v1")
	if *m.Spec.BalancerdReplicas != 3 {
		t.Errorf("there are %d balancerds", *m.Spec.BalancerdReplicas)
	}
	if m.Status.RequestedRolloutHash != m.Status.LastCompletedRolloutHash {
		t.Errorf("hashes: %+v", m.Status)
	}
	if asked := e.daemon(2).Asked(); len(asked) > 0 {
		t.Errorf("the next generation was asked: %v", asked)
	}
	watched.check(t)
	if after := e.set(t, 1); after.UID != before.UID || after.Generation != before.Generation {
		t.Error("what serves was touched")
	}
}

func TestAbortOfFirstRollout(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	e := w.namespaced(t, "mz")
	e.daemon(1).Behave(environmentd.Manner{CatchesUp: true})
	if err := w.Create(t.Context(), e.materialize()); err != nil {
		t.Fatal(err)
	}
	e.says(t, v1alpha2.ReasonApplying)
	result := e.command(t, "abort", "--yes")
	if want := "there is no spec to restore"; result.Code != 1 || !strings.Contains(result.Stderr, want) {
		t.Errorf("it ended with %d, want %q: %s%s", result.Code, want, result.Stdout, result.Stderr)
	}
	for verb, want := range map[string]string{"status": "", "plan": "", "watch": "", "promote": "--yes", "abort": "--yes"} {
		args := append([]string{verb, "mzs", "nobody", "-n", e.namespace}, strings.Fields(want)...)
		result := harness.RunCommand(t, e.Cluster, args...)
		if want := fmt.Sprintf("error: materialize.materialize.cloud/nobody does not exist in namespace %s\n", e.namespace); result.Stderr != want {
			t.Errorf("%s says %q", verb, result.Stderr)
		}
	}
}

// A user who may read a part of an environment is shown that part, and which kinds are left out.
func TestCommandsWithoutPermissions(t *testing.T) {
	t.Parallel()
	e := theWorld(t).deployed(t)
	// Certificates are a kind of the cluster only once another test has installed it.
	e.allow(t, "looker", []string{"get", "list", "watch"}, "materializes", "configmaps", "services", "statefulsets", "certificates")
	e.allow(t, "stranger", []string{"get"}, "materializes")
	const leftOut = "Left out, because you may not list them: Deployments, Pods, RoleBindings, Roles, ServiceAccounts."
	path := manifest(t, written("{environmentdImageRef: v2, backendSecretName: backend}"))
	for name, c := range map[string]struct {
		user string
		args []string
		code int
		want string
	}{
		"status":              {"looker", []string{"status"}, 0, leftOut},
		"plan":                {"looker", []string{"plan"}, 0, leftOut},
		"watch":               {"looker", []string{"watch", "--wait"}, 0, "Applied: generation 1 serves the current spec"},
		"plan for a manifest": {"looker", []string{"plan", "-f", path}, 1, "which takes the permission to patch"},
		"nothing to be seen":  {"stranger", []string{"status"}, 1, `User "stranger" cannot list resource "configmaps"`},
		"nothing to watch":    {"stranger", []string{"watch"}, 1, `User "stranger" cannot list resource "configmaps"`},
	} {
		t.Run(name, func(t *testing.T) {
			result := harness.RunCommand(t, e.as(t, c.user), append(c.args, "mzs/mz", "-n", e.namespace)...)
			if result.Code != c.code || !strings.Contains(result.Stdout+result.Stderr, c.want) {
				t.Errorf("it ended with %d, want %d and %q:\n%s%s", result.Code, c.code, c.want, result.Stdout, result.Stderr)
			}
		})
	}
}

// allow lets a user do something in the environment's namespace.
func (e *environment) allow(t testing.TB, user string, verbs []string, resources ...string) {
	t.Helper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: user},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"", "apps", "cert-manager.io", v1alpha2.GroupVersion.Group}, Resources: resources, Verbs: verbs}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	for _, object := range []client.Object{role, binding} {
		if err := e.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	if err := harness.AwaitAuthorization(t.Context(), e.WithWatch, user, e.namespace, role.Rules[0]); err != nil {
		t.Fatal(err)
	}
}

// as is the cluster as a user sees it.
func (e *environment) as(t testing.TB, user string) *cluster.Cluster {
	t.Helper()
	config, err := clientcmd.LoadFromFile(e.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range config.AuthInfos {
		info.Impersonate = user
	}
	theirs := *e.Cluster
	theirs.Dir = t.TempDir()
	if err := clientcmd.WriteToFile(*config, theirs.Kubeconfig()); err != nil {
		t.Fatal(err)
	}
	return &theirs
}
