package helm_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
)

func TestInstallResumes(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	disturb(t, faults.Scenario{Config: h.config, Setup: func(testing.TB) faults.World {
		return h.installation(h.harbour("ahab", "pequod", "rachel"), synthetic, nil)
	}}, faults.Conflict(), faults.TooManyRequests(0), faults.InternalError())
}

func TestUpgradeResumes(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	disturb(t, faults.Scenario{Config: h.config, Setup: func(testing.TB) faults.World {
		before := h.harbour("ahab", "pequod", "rachel")
		h.install(before)
		return h.installation(and(before, "bildad", "pequod", "bouton"), synthetic, h.uids(before))
	}}, faults.Conflict(), faults.TooManyRequests(0), faults.InternalError())
}

func TestUpgradeOfIstiodResumes(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	faults.DisturbEveryWrite(t, faults.Scenario{Config: h.config, Pick: faults.Sample(9, toRecord), Setup: func(testing.TB) faults.World {
		before := h.istiod("v1.24.0")
		h.install(before)
		after := before
		after.Chart, after.ChartVersion = istio(t, "v1.31.1", "istiod"), "v1.31.1"
		return h.installation(after, istiodKinds, h.uids(before))
	}}, faults.Kills()...)
}

// disturb kills the process of a scenario at each of its writes, and refuses a sample of them in one of several ways; in
// full, each of them in all ways.
func disturb(t *testing.T, scenario faults.Scenario, refusals ...faults.Action) {
	t.Helper()
	refused := faults.Sample(4, toRecord)
	faults.DisturbWrites(t, scenario, func(k int, writes faults.Log) []faults.Action {
		switch {
		case faults.Full():
			return append(faults.Kills(), refusals...)
		case refused(k, writes):
			return append(faults.Kills(), refusals[k%len(refusals)])
		}
		return faults.Kills()
	})
}

// toRecord matches writes of Helm's records.
var toRecord = faults.To("secrets")

func TestUninstallResumes(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	disturb(t, faults.Scenario{Config: h.config, Setup: func(testing.TB) faults.World {
		spec := h.harbour("ahab", "pequod", "rachel")
		h.install(spec)
		h.install(and(spec, "bildad", "pequod", "bouton"))
		world := h.installation(spec, synthetic, nil)
		world.Run = func(ctx context.Context, config *rest.Config) error {
			manager, _, err := connect(config, logr.Discard())
			if err != nil {
				return err
			}
			return manager.Uninstall(ctx, spec.Namespace, spec.Name)
		}
		world.Settled = func(context.Context) error {
			if left := append(h.installed(spec), recordNames(h.records(spec))...); len(left) > 0 {
				return fmt.Errorf("still there: %s", strings.Join(left, ", "))
			}
			return nil
		}
		return world
	}}, faults.Conflict(), faults.InternalError())
}

// Whatever an interrupted upgrade has left, the next one to something else must not leave any of it behind, and an
// uninstall must not leave anything at all.
func TestNoOrphansAfterACrash(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	for _, cut := range faults.Kills() {
		for k := 1; ; k++ {
			spec := h.harbour("ahab", "pequod", "rachel")
			h.install(spec)
			title := fmt.Sprintf("%s write %d", cut, k)
			if !h.crash(and(spec, "bildad", "pequod", "bouton"), cut, k) {
				if k < 8 {
					t.Fatalf("there are only %d writes", k-1)
				}
				break
			}
			// Another upgrade that fails, of which the last one has to know too.
			if !h.crash(and(spec, "bildad", "town-ho"), faults.CutAfter(), 3) {
				t.Fatalf("%s: the second upgrade was not disturbed", title)
			}
			if k%2 == 0 {
				third := and(spec, "peleg", "albatross")
				h.install(third)
				h.is(title, third)
				continue
			}
			h.uninstall(spec)
			if left := append(h.installed(spec), recordNames(h.records(spec))...); len(left) > 0 {
				t.Errorf("%s: the uninstall has left %v", title, left)
			}
		}
	}
}

func TestUninstallAnInterruptedInstall(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	for k := 1; ; k++ {
		spec := h.harbour("ahab", "pequod")
		crashed := h.crash(spec, faults.CutAfter(), k)
		h.uninstall(spec)
		if left := append(h.installed(spec), recordNames(h.records(spec))...); len(left) > 0 {
			t.Errorf("cut after write %d: the uninstall has left %v", k, left)
		}
		if !crashed {
			break
		}
	}
}

func TestInstallOverAnInterruptedUninstall(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	spec := h.harbour("ahab", "pequod", "rachel")
	for k := 1; ; k++ {
		h.install(spec)
		injector := faults.New(faults.Rule{Match: faults.Write, Nth: k, Action: faults.CutBefore()})
		manager, _ := h.connect(injector.Config(h.config))
		err := manager.Uninstall(t.Context(), spec.Namespace, spec.Name)
		h.install(spec)
		h.is(fmt.Sprintf("uninstall cut before write %d", k), spec)
		if err == nil {
			break
		}
	}
}

// A release that fails over and over again leaves no pile of records.
func TestFailedRecordsAreBounded(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	spec := h.harbour("ahab", "pequod")
	h.install(spec)
	broken := faults.New(faults.Rule{Match: faults.To("deployments.apps", "patch"), Action: faults.InternalError()})
	manager, _ := h.connect(broken.Config(h.config))
	for range 5 {
		if err := manager.Install(t.Context(), and(spec, "bildad", "pequod", "rachel")); err == nil {
			t.Fatal("it did not fail")
		}
	}
	if records := h.records(spec); len(records) > 3 {
		t.Errorf("there are %d records: %v", len(records), recordNames(records))
	}
	last := and(spec, "peleg")
	h.install(last)
	h.is("after the failures", last)
	for i := range 3 {
		h.install(and(spec, fmt.Sprint("captain-", i), "pequod"))
	}
	if records := h.records(spec); len(records) != 2 {
		t.Errorf("after successes there are %d records: %v", len(records), recordNames(records))
	}
}

// crash installs with a process that is cut off at its k-th write, if it comes to that.
func (h *hub) crash(spec release.Spec, cut faults.Action, k int) bool {
	h.t.Helper()
	injector := faults.New(faults.Rule{Match: faults.Write, Nth: k, Action: cut})
	manager, _ := h.connect(injector.Config(h.config))
	err := manager.Install(h.t.Context(), spec)
	if err == nil && injector.Fired() && !strings.HasPrefix(cut.String(), "cut after") {
		h.t.Fatalf("%s write %d: nothing was noticed", cut, k)
	}
	return injector.Fired()
}

// is demands that just this spec is installed.
func (h *hub) is(title string, spec release.Spec) {
	h.t.Helper()
	if diff := cmp.Diff(names(h.render(spec)), h.installed(spec)); diff != "" {
		h.t.Errorf("%s: objects (-want +got):\n%s", title, diff)
	}
	if changed := h.restoreAll(spec, h.render(spec)); changed != nil {
		h.t.Errorf("%s: these differ: %v", title, changed)
	}
	state := release.StateOf(h.records(spec))
	if !state.Deployed() || state.Fingerprint != spec.Fingerprint() {
		h.t.Errorf("%s: the state is %+v", title, state)
	}
}

func (h *hub) uids(spec release.Spec) map[string]types.UID {
	h.t.Helper()
	uids := map[string]types.UID{}
	for _, object := range h.render(spec) {
		uids[describe(object)] = h.live(object).GetUID()
	}
	return uids
}

var istiodKinds = append([]schema.GroupVersionKind{
	{Version: "v1", Kind: "ServiceAccount"},
	{Version: "v1", Kind: "Service"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
}, synthetic...)

// installation is a world in which a release is installed. Objects that were there before must still be the same ones.
func (h *hub) installation(spec release.Spec, kinds []schema.GroupVersionKind, before map[string]types.UID) faults.World {
	return faults.World{
		Teardown: func() { h.uninstall(spec) },
		Run: func(ctx context.Context, config *rest.Config) error {
			manager, _, err := connect(config, logr.Discard())
			if err != nil {
				return err
			}
			return manager.Install(ctx, spec)
		},
		Settled: func(ctx context.Context) error {
			state := release.StateOf(h.records(spec))
			if !state.Deployed() || state.Fingerprint != spec.Fingerprint() {
				return fmt.Errorf("the state is %+v", state)
			}
			for _, object := range h.render(spec) {
				live := h.live(object)
				if was, ok := before[describe(object)]; ok && (live == nil || live.GetUID() != was) {
					return fmt.Errorf("%s is not the one that was there before", describe(object))
				}
			}
			return nil
		},
		Snapshot: func(ctx context.Context) (map[string]string, error) {
			dump := faults.Dump{
				Kinds: kinds,
				In:    []client.ListOption{client.MatchingLabels{v1.LabelPassage: v1.PassageRevision}},
				Names: map[string]string{spec.Namespace: "sea", spec.Owner.Name: "owner"},
				Scrub: scrub,
			}
			all, err := dump.Snapshot(ctx, h)
			maps.DeleteFunc(all, func(key, text string) bool {
				return !strings.Contains(text, "meta.helm.sh/release-namespace: sea\n")
			})
			if len(all) == 0 && err == nil {
				return map[string]string{}, nil
			}
			return all, err
		},
	}
}

// scrub hides what is given out by the API server in turn.
func scrub(object *unstructured.Unstructured) {
	for _, field := range []string{"clusterIP", "clusterIPs"} {
		unstructured.RemoveNestedField(object.Object, "spec", field)
	}
}

func recordNames(records []metav1.PartialObjectMetadata) []string {
	var all []string
	for _, record := range records {
		all = append(all, record.GetName())
	}
	slices.Sort(all)
	return all
}
