package crds_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/faults"
)

// upgraded is a CRD that stores v2, with boats that are stored as v1.
func (h *hub) upgraded(plural string, names ...string) map[string]*unstructured.Unstructured {
	h.t.Helper()
	before := h.seed(plural, names...)
	h.install(nextBoats(plural).Obj(), crds.Options{Webhook: shipyard(h.t)}).is(crds.Updated, "from schema version 1 to 2")
	for _, name := range names {
		h.sails("v2", plural, name, "crew", "mate of "+name)
	}
	return before
}

func (h *hub) migrate(cfg *rest.Config, plural string, opts crds.MigrateOptions) (crds.Migration, error) {
	h.t.Helper()
	opts.Rate, opts.CRDs = 1000, []*apiextensionsv1.CustomResourceDefinition{makeCRD(plural).Obj()}
	all, err := crds.Migrate(h.t.Context(), cfg, opts)
	if len(all) != 1 {
		h.t.Fatalf("%v, %v", all, err)
	}
	return all[0], err
}

func (h *hub) stores(plural string, want ...string) {
	h.t.Helper()
	if got := h.get(plural + ".harbour.test").Status.StoredVersions; !slices.Equal(got, want) {
		h.t.Errorf("the stored versions are %v", got)
	}
}

func fleet(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("boat-%02d", i))
	}
	return names
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	boats := h.fresh("boats")
	before := h.upgraded(boats, "heron", "egret")
	h.stores(boats, "v1", "v2")

	got, err := h.migrate(h.cfg, boats, crds.MigrateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := crds.Migration{Name: boats + ".harbour.test", From: []string{"v1"}, To: "v2", Rewritten: 2, Done: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	h.stores(boats, "v2")
	migrated := map[string]string{}
	for name, old := range before {
		boat, err := h.boatAs("v2", boats, name)
		if err != nil {
			t.Fatal(err)
		}
		if boat.GetResourceVersion() == old.GetResourceVersion() {
			t.Errorf("%s was not written", name)
		}
		if boat.GetGeneration() != old.GetGeneration() || boat.GetUID() != old.GetUID() {
			t.Errorf("%s is not the same any more: generation %d, was %d", name, boat.GetGeneration(), old.GetGeneration())
		}
		back, err := h.boatAs("v1", boats, name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(old.Object["spec"], back.Object["spec"]); diff != "" {
			t.Errorf("%s has changed: %s", name, diff)
		}
		migrated[name] = boat.GetResourceVersion()
	}

	watched := faults.New()
	got, err = h.migrate(watched.Config(h.cfg), boats, crds.MigrateOptions{})
	if err != nil || !got.Done || len(got.From) > 0 {
		t.Errorf("migrated again: %+v, %v", got, err)
	}
	if log := watched.Log(); len(log) > 0 {
		t.Errorf("migrated again, it wrote:\n%s", log)
	}
}

// What is stored right already is not written again: an interrupted migration can start from the beginning.
func TestMigrateWritesOnlyOldVersions(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	boats := h.fresh("boats")
	h.upgraded(boats, "heron", "egret")
	heron, err := h.boatAs("v2", boats, "heron")
	if err != nil {
		t.Fatal(err)
	}
	unstructured.SetNestedField(heron.Object, "of seven", "spec", "crew")
	if err := h.Update(t.Context(), heron); err != nil {
		t.Fatal(err)
	}
	if _, err := h.migrate(h.cfg, boats, crds.MigrateOptions{}); err != nil {
		t.Fatal(err)
	}
	after, err := h.boatAs("v2", boats, "heron")
	if err != nil {
		t.Fatal(err)
	}
	if after.GetResourceVersion() != heron.GetResourceVersion() {
		t.Error("an object that was stored right was written")
	}
}

func TestMigrateInPages(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	boats := h.fresh("boats")
	h.upgraded(boats, fleet(7)...)
	var reported []string
	m := crds.MigrateOptions{PageSize: 3, Progress: func(m crds.Migration) {
		reported = append(reported, fmt.Sprintf("%d+%d %t", m.Rewritten, m.Remaining, m.Done))
	}}
	if _, err := h.migrate(h.cfg, boats, m); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"3+4 false", "6+1 false", "7+0 false", "7+0 true"}, reported); diff != "" {
		t.Error(diff)
	}
	h.stores(boats, "v2")
}

func TestMigrateWhileOthersWork(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	boats := h.fresh("boats")
	h.upgraded(boats, fleet(6)...)
	page := 0
	opts := crds.MigrateOptions{PageSize: 2, Progress: func(m crds.Migration) {
		switch page++; page {
		case 1: // of the next page, one goes and one changes; another one comes
			if err := h.Delete(t.Context(), newBoat(boats, "boat-02")); err != nil {
				t.Error(err)
			}
			boat, err := h.boatAs("v1", boats, "boat-03")
			if err != nil {
				t.Error(err)
				return
			}
			unstructured.SetNestedField(boat.Object, "somebody else", "spec", "mate")
			if err := errors.Join(h.Update(t.Context(), boat), h.Create(t.Context(), newBoat(boats, "boat-99"))); err != nil {
				t.Error(err)
			}
		}
	}}
	got, err := h.migrate(h.cfg, boats, opts)
	if err != nil || got.Failed > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	h.stores(boats, "v2")
	h.sails("v2", boats, "boat-03", "crew", "somebody else")
}

// A CRD that changes while its objects are gone through may have stored another version in between.
func TestMigrateAgainWhenTheCRDChanges(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	boats := h.fresh("boats")
	h.upgraded(boats, "heron")
	pages := 0
	opts := crds.MigrateOptions{Progress: func(m crds.Migration) {
		if pages++; pages == 1 {
			h.eventually("the CRD to be changed", func() bool {
				live := h.get(boats + ".harbour.test")
				live.Spec.Names.ShortNames = []string{boats + "x"}
				return h.Update(t.Context(), live) == nil
			})
		}
	}}
	got, err := h.migrate(h.cfg, boats, opts)
	if err != nil || !got.Done {
		t.Errorf("%+v, %v", got, err)
	}
	if pages != 3 {
		t.Errorf("progress was told of %d times, want one round, another and the end", pages)
	}
	h.stores(boats, "v2")
}

func TestStoryMigrationRefused(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	boats := h.fresh("boats")
	h.upgraded(boats, "heron", "egret")
	denied := h.deny(boats, "heron")
	var refused []string
	opts := crds.MigrateOptions{Refused: func(object string, err error) {
		refused = append(refused, object)
		if !strings.Contains(err.Error(), "moored") {
			t.Error(err)
		}
	}}
	if got, err := h.migrate(h.cfg, boats, opts); !errors.Is(err, crds.ErrNotMigrated) || got.Failed != 1 || got.Rewritten != 1 || got.Done {
		t.Errorf("%+v, %v", got, err)
	}
	if want := kindOf(boats) + " heron"; !slices.Contains(refused, want) {
		t.Errorf("refused: %v", refused)
	}
	h.stores(boats, "v1", "v2")

	denied()
	h.eventually("it to be let go", func() bool {
		got, err := h.migrate(h.cfg, boats, crds.MigrateOptions{})
		return err == nil && got.Done
	})
	h.stores(boats, "v2")
}

// deny has the API server refuse every change of a boat, until it is told not to.
func (h *hub) deny(plural, name string) func() {
	h.t.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: plural},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{"harbour.test"}, APIVersions: []string{"*"}, Resources: []string{plural}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "object.metadata.name != '" + name + "'", Message: "it is moored"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: plural},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: plural, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	if err := errors.Join(h.Create(h.t.Context(), policy), h.Create(h.t.Context(), binding)); err != nil {
		h.t.Fatal(err)
	}
	lift := func() {
		_ = h.Delete(context.Background(), binding)
		_ = h.Delete(context.Background(), policy)
	}
	h.t.Cleanup(lift)
	h.eventually("the policy to refuse", func() bool {
		boat, err := h.boatAs("v2", plural, name)
		if err == nil {
			err = h.Update(h.t.Context(), boat, client.DryRunAll)
		}
		return err != nil && strings.Contains(err.Error(), "moored")
	})
	return lift
}

func TestMigrationResumesAfterACrash(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	hook := shipyard(t)
	scenario := faults.Scenario{Config: h.cfg, Setup: func(testing.TB) faults.World {
		boats := h.fresh("boats")
		h.seed(boats, "heron", "egret")
		return h.migration(boats, hook)
	}}
	disturb(t, scenario)
}

// migration is a world in which a CRD gets another version, and its objects with it.
func (h *hub) migration(boats string, hook *crds.Webhook) faults.World {
	want := nextBoats(boats).Obj()
	world := h.installation(crds.Options{Webhook: hook}, want)
	world.Run = func(ctx context.Context, cfg *rest.Config) error {
		if _, err := install(ctx, cfg, []*apiextensionsv1.CustomResourceDefinition{want}, crds.Options{Webhook: hook}); err != nil {
			return err
		}
		_, err := crds.Migrate(ctx, cfg, crds.MigrateOptions{Rate: 1000, CRDs: []*apiextensionsv1.CustomResourceDefinition{want}})
		return err
	}
	settled := world.Settled
	world.Settled = func(ctx context.Context) error {
		live, err := h.find(ctx, want.Name)
		if err != nil {
			return err
		}
		if stored := live.Status.StoredVersions; !slices.Equal(stored, []string{"v2"}) {
			return fmt.Errorf("objects may be stored as %v", stored)
		}
		return settled(ctx)
	}
	return world
}
