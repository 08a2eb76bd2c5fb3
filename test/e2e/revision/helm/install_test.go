package helm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

func TestStateFromRecordLabels(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	spec := h.harbour("ahab", "pequod")
	h.install(spec)
	next := and(spec, "bildad", "pequod")
	next.Owner, next.ChartVersion = nil, "v1.2.3+build"
	h.install(next)

	labels := map[string]map[string]string{}
	for _, record := range h.records(spec) {
		delete(record.Labels, "createdAt")
		delete(record.Labels, "modifiedAt")
		labels[record.Name] = record.Labels
	}
	want := map[string]map[string]string{
		"sh.helm.release.v1.harbour.v1": {
			"name": "harbour", "owner": "helm", "version": "1", "status": "superseded",
			v1.LabelPassage: v1.PassageRevision, v1.LabelFingerprint: spec.Fingerprint(),
			v1.LabelOwner: release.OwnerLabel(spec.Owner), v1.LabelChartVersion: "1.2.3",
		},
		"sh.helm.release.v1.harbour.v2": {
			"name": "harbour", "owner": "helm", "version": "2", "status": "deployed",
			v1.LabelPassage: v1.PassageRevision, v1.LabelFingerprint: next.Fingerprint(),
			v1.LabelChartVersion: "v1.2.3_build",
		},
	}
	if diff := cmp.Diff(want, labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if owners := h.live(find(t, h.render(next), "Deployment")).GetOwnerReferences(); len(owners) > 0 {
		t.Errorf("what belongs to nobody any more belongs to %v", owners)
	}
}

func TestTemplateErrors(t *testing.T) {
	h := newHub(t)
	unknownProfile := h.istiod("v1.24.0")
	unknownProfile.Values["profile"] = "nonsense"
	noYAML := release.Spec{Name: "a", Namespace: unknownProfile.Namespace, Chart: makeChart("1", map[string]string{"a.yaml": "a: b: c"})}
	noObject := release.Spec{Name: "b", Namespace: unknownProfile.Namespace, Chart: makeChart("2", map[string]string{"a.yaml": "a: b"})}
	tests := map[string]struct {
		spec release.Spec
		want string
	}{
		"values that the chart refuses": {unknownProfile, "unknown profile nonsense"},
		"no YAML":                       {noYAML, "YAML parse error on synthetic/templates/a.yaml"},
		"no object":                     {noObject, "synthetic/templates/a.yaml: Object 'Kind' is missing"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := h.Render(t.Context(), tc.spec)
			if !errors.As(err, new(*release.RenderError)) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error %v, want a RenderError that contains %q", err, tc.want)
			}
			before := operations(t)
			if err := h.Install(t.Context(), tc.spec); !errors.As(err, new(*release.RenderError)) {
				t.Errorf("error of the install: %v", err)
			}
			if diff := cmp.Diff(before, operations(t)); diff != "" {
				t.Errorf("what cannot be rendered was tried again:\n%s", diff)
			}
		})
	}
}

func TestOperationsAreCounted(t *testing.T) {
	h := newHub(t)
	before := operations(t)
	spec := h.harbour("ahab", "pequod")
	h.install(spec)
	h.install(spec)
	h.render(spec)
	next := and(spec, "bildad", "pequod")
	h.install(next)
	if err := h.Delete(t.Context(), h.live(find(t, h.render(next), "Deployment"))); err != nil {
		t.Fatal(err)
	}
	h.restoreAll(next, h.render(next))
	h.uninstall(spec)
	h.uninstall(spec)

	got := operations(t)
	for name := range got {
		got[name] -= before[name]
	}
	want := map[string]float64{"render": 2, "install": 1, "upgrade": 1, "compare": 4, "restore": 1, "uninstall": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
}

func operations(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, family := range families {
		if family.GetName() == "fairlead_helm_operations_total" {
			for _, metric := range family.GetMetric() {
				counts[metric.GetLabel()[0].GetValue()] = metric.GetCounter().GetValue()
			}
		}
	}
	return counts
}

func TestForbiddenErrorIsReturned(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	spec := h.harbour("ahab", "pequod")
	user := cluster.Name(t)
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"", "apps", "rbac.authorization.k8s.io", "admissionregistration.k8s.io"},
			Resources: []string{"secrets", "configmaps", "deployments", "clusterroles", "validatingwebhookconfigurations"},
			Verbs:     []string{"*"},
		}},
	}
	// All verbs would include the one that lifts the limit.
	role.Rules[0].Verbs = []string{"get", "list", "create", "update", "patch", "delete"}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
	if err := errors.Join(h.Create(t.Context(), role), h.Create(t.Context(), binding)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = h.Delete(context.Background(), role)
		_ = h.Delete(context.Background(), binding)
	})
	limited := rest.CopyConfig(h.config)
	limited.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	manager, _ := h.connect(limited)

	var err error
	wait.Until(t, func(ctx context.Context) error { // until the authorizer has seen the role
		if err = manager.Install(ctx, spec); err == nil || strings.Contains(err.Error(), "attempting to grant") {
			return nil
		}
		return err
	})
	if !apierrors.IsForbidden(err) {
		t.Fatalf("error %v, want one that is recognisable as forbidden", err)
	}
	want := "install release " + spec.Namespace + "/harbour: apply ClusterRole harbour-" + spec.Namespace + ": "
	if text := err.Error(); !strings.HasPrefix(text, want) || strings.Contains(text, "\n") ||
		!strings.HasSuffix(text, `is attempting to grant RBAC permissions not currently held: {APIGroups:[""], Resources:["pods"], Verbs:["get"]}`) {
		t.Errorf("error %q", text)
	}

	h.install(spec)
	h.is("once it is permitted", spec)
}

func TestInvalidObjects(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	tests := map[string]struct {
		object string
		want   string
	}{
		"a text where a number belongs": {
			`{apiVersion: v1, kind: Service, metadata: {name: pier}, spec: {ports: [{port: many}]}}`, "apply Service %s/pier: ",
		},
		"a number that cannot be": {
			`{apiVersion: v1, kind: Service, metadata: {name: pier}, spec: {ports: [{port: 70000}]}}`, "apply Service %s/pier: ",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := h.in(t)
			spec := h.harbour("ahab")
			spec.Chart = makeChart(name, map[string]string{"pier.yaml": tc.object})
			err := h.Install(t.Context(), spec)
			if !release.Refused(err) {
				t.Fatalf("error %v, want one that is final", err)
			}
			if cause := release.Cause(err).Error(); !strings.HasPrefix(cause, fmt.Sprintf(tc.want, spec.Namespace)) {
				t.Errorf("cause: %s", cause)
			}
			if release.Refused(errors.New("the network is down")) {
				t.Error("what has nothing to do with the object is final too")
			}
		})
	}
}

func TestContextCancelled(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	// What Helm writes itself, and what is written for it.
	for name, held := range map[string]faults.Match{
		"record": faults.To("secrets", "create"),
		"object": faults.To("deployments.apps", "patch"),
	} {
		t.Run(name, func(t *testing.T) {
			h := h.in(t)
			spec := h.harbour("ahab", "pequod")
			h.install(spec)
			next := and(spec, "bildad", "rachel")
			injector := faults.New(faults.Rule{Match: held, Action: faults.Hold(nil)})
			manager, _ := h.connect(injector.Config(h.config))

			ctx, cancel := context.WithCancelCause(t.Context())
			over := make(chan error, 1)
			go func() { over <- manager.Install(ctx, next) }()
			wait.Until(t, func(context.Context) error {
				if injector.Log().Count(held) == 0 {
					return errors.New("the install does not get to what is held")
				}
				return nil
			})
			enough := errors.New("enough")
			cancel(enough)
			select {
			case err := <-over:
				if !errors.Is(err, enough) {
					t.Errorf("error %v", err)
				}
			case <-time.After(wait.Deadline()):
				t.Fatal("the install goes on")
			}
			written := injector.Log()
			if last := written[len(written)-1]; !held(last.Request) {
				t.Errorf("after the context had ended, this was written: %s", last.Request)
			}
			if err := manager.Install(ctx, spec); !errors.Is(err, enough) && !errors.Is(err, context.Canceled) {
				t.Errorf("error of an install that need not begin: %v", err)
			}

			h.install(next)
			h.is("after another attempt", next)
			if log := injector.Log(); len(log) > len(written) {
				t.Errorf("the first attempt went on writing:\n%s", log[len(written):])
			}
		})
	}
}

func TestConcurrentInstalls(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	spec := h.harbour("ahab", "pequod")
	var group sync.WaitGroup
	errs := make([]error, 6)
	for i := range errs {
		group.Go(func() { errs[i] = h.Install(t.Context(), spec) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	h.isDeployed(spec, 1)
}

func TestHelmIsQuiet(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	spec := h.harbour("ahab", "pequod")
	h.install(spec)
	for verbosity, speaks := range map[int]bool{0: false, 1: true} {
		broken := faults.New(faults.Rule{Match: faults.To("deployments.apps", "patch"), Action: faults.InternalError()})
		var lines []string
		log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{Verbosity: verbosity})
		manager, _, err := connect(broken.Config(h.config), log)
		if err != nil {
			t.Fatal(err)
		}
		if err := manager.Install(t.Context(), and(spec, "bildad")); err == nil {
			t.Fatal("it did not fail")
		}
		if (len(lines) > 0) != speaks {
			t.Errorf("at verbosity %d, Helm said: %q", verbosity, lines)
		}
	}
}

func TestMissingNamespace(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	spec := h.harbour("ahab")
	spec.Namespace = "nowhere"
	if err := h.Install(t.Context(), spec); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `namespaces "nowhere" not found`) {
		t.Errorf("error of the install: %v", err)
	}
	if left := h.installed(spec); len(left) > 0 {
		t.Errorf("these were installed all the same: %v", left)
	}
	if err := h.Uninstall(t.Context(), "nowhere", "harbour"); err != nil {
		t.Errorf("error of the uninstall: %v", err)
	}
}

// The records of a release go with its namespace, before or while it is uninstalled, but not all of its objects do.
func TestUninstallInTerminatingNamespace(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"with it": false, "after it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // Kubernetes takes its time over a namespace
			h := newHub(t)
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.Name(t)}}
			if err := h.Create(t.Context(), namespace); err != nil {
				t.Fatal(err)
			}
			spec := h.harbour("ahab", "pequod")
			spec.Namespace = namespace.Name
			h.install(spec)
			objects := h.render(spec)
			if err := h.Delete(t.Context(), namespace); err != nil {
				t.Fatal(err)
			}
			wait.Until(t, func(context.Context) error {
				if late && len(h.records(spec)) > 0 {
					return errors.New("the records of the release are still there")
				}
				return nil
			})
			h.uninstall(spec)
			h.gone(objects)
		})
	}
}
