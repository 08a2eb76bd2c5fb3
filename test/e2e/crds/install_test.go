package crds_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/test/harness/wait"
)

func TestInstallAll(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	first, err := crds.Install(t.Context(), h.cfg, crds.Options{Timeout: wait.Deadline()})
	if err != nil {
		t.Fatal(err)
	}
	before := map[string]string{}
	for _, result := range first {
		live := h.get(result.Name)
		if err := established(live); err != nil {
			t.Error(err)
		}
		before[result.Name] = live.ResourceVersion
	}

	in := faults.New()
	second, err := crds.Install(t.Context(), in.Config(h.cfg), crds.Options{Timeout: wait.Deadline()})
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range second {
		if result.Outcome != crds.Unchanged {
			t.Errorf("installed again: %s is %s %s", result.Name, result.Outcome, result.Message)
		}
		if live := h.get(result.Name); live.ResourceVersion != before[result.Name] {
			t.Errorf("installed again: %s was written", result.Name)
		}
	}
	if log := in.Log(); len(log) > 0 {
		t.Errorf("installed again, it asked for writes:\n%s", log)
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	boats := h.fresh("boats")
	h.install(makeCRD(boats).Schema(1).ShortName(boats+"x").Obj(), crds.Options{}).is(crds.Created, "")
	boat := h.launch(boats, "heron")

	h.install(makeCRD(boats).Schema(2).Field("crew").Obj(), crds.Options{}).is(crds.Updated, "from schema version 1 to 2")
	live := h.get(boats + ".harbour.test")
	if len(live.Spec.Names.ShortNames) > 0 {
		t.Error("a short name that is no longer wanted is still there")
	}
	if owner := applyOwners(live); !slices.Equal(owner, []string{crds.FieldOwner}) {
		t.Errorf("applied by %v", owner)
	}
	if h.boat(boats, "heron").GetUID() != boat.GetUID() {
		t.Error("the object did not survive")
	}
	h.eventually("the new field to be served", func() bool {
		fresh := h.boat(boats, "heron")
		unstructured.SetNestedField(fresh.Object, "seven", "spec", "crew")
		if err := h.Update(t.Context(), fresh); err != nil {
			return false
		}
		crew, _, _ := unstructured.NestedString(h.boat(boats, "heron").Object, "spec", "crew")
		return crew == "seven"
	})
}

func TestNoDowngrade(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	boats := h.fresh("boats")
	h.install(makeCRD(boats).Schema(2).Field("crew").Obj(), crds.Options{})
	before := h.get(boats + ".harbour.test")

	message := "the cluster has schema version 2, newer than 1 of this Fairlead, and keeps it"
	h.install(makeCRD(boats).Schema(1).Obj(), crds.Options{}).is(crds.NewerInCluster, message)
	h.install(makeCRD(boats).Schema(1).Obj(), crds.Options{TakeOver: true}).is(crds.NewerInCluster, message)
	if after := h.get(boats + ".harbour.test"); after.ResourceVersion != before.ResourceVersion {
		t.Error("the newer CRD was written")
	}
}

func TestForeignCRD(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	boats := h.fresh("boats")
	foreign := makeCRD(boats).Field("owner").Webhook().Obj()
	if err := h.Create(t.Context(), foreign, client.FieldOwner("sail-operator")); err != nil {
		t.Fatal(err)
	}
	h.eventually("the foreign CRD to be established", func() bool {
		return established(h.get(foreign.Name)) == nil
	})
	boat := h.launch(boats, "heron")
	before := h.get(foreign.Name)

	refused := h.install(makeCRD(boats).Schema(1).Obj(), crds.Options{})
	if refused.result.Outcome != crds.NotOwned {
		t.Errorf("outcome %s", refused.result.Outcome)
	}
	if refused.err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{foreign.Name, "sail-operator", "--take-over", "--install-crds=false"} {
		if !strings.Contains(refused.err.Error(), part) {
			t.Errorf("the error does not speak of %s: %v", part, refused.err)
		}
	}
	if after := h.get(foreign.Name); after.ResourceVersion != before.ResourceVersion {
		t.Error("the foreign CRD was written")
	}

	h.install(makeCRD(boats).Schema(1).Obj(), crds.Options{TakeOver: true}).is(crds.TakenOver, "the CRD was managed by sail-operator")
	taken := h.get(foreign.Name)
	if taken.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter {
		t.Error("the former owner's webhook still converts")
	}
	if h.boat(boats, "heron").GetUID() != boat.GetUID() {
		t.Error("the object did not survive")
	}
	h.install(makeCRD(boats).Schema(1).Obj(), crds.Options{}).is(crds.Unchanged, "")
}

func TestForeignCRDDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	boats, crews := h.fresh("boats"), h.fresh("crews")
	if err := h.Create(t.Context(), makeCRD(boats).Obj()); err != nil {
		t.Fatal(err)
	}
	results, err := install(t.Context(), h.cfg, []*apiextensionsv1.CustomResourceDefinition{
		makeCRD(boats).Schema(1).Obj(), makeCRD(crews).Schema(1).Obj(),
	}, crds.Options{})
	if err == nil || !strings.Contains(err.Error(), "was not installed by Fairlead") {
		t.Errorf("got %v", err)
	}
	if results[0].Outcome != crds.NotOwned || results[1].Outcome != crds.Created {
		t.Errorf("got %+v", results)
	}
}

func TestDriftIsRepaired(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	boats := h.fresh("boats")
	want := makeCRD(boats).Schema(1).Obj()
	h.install(want, crds.Options{})
	h.eventually("an edit by hand", func() bool {
		live := h.get(want.Name)
		delete(live.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "name")
		return h.Update(t.Context(), live, client.FieldOwner("kubectl-edit")) == nil
	})
	h.install(want, crds.Options{}).is(crds.Repaired, "the CRD differed from schema version 1")
	if live := h.get(want.Name); !same(live, want) {
		t.Error("the edit is still there")
	}
	h.install(want, crds.Options{}).is(crds.Unchanged, "")
}

func TestConversionOfAnotherOwnerSurvives(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	boats := h.fresh("boats")
	h.install(makeCRD(boats).Schema(1).Obj(), crds.Options{})
	h.eventually("conversion to be set", func() bool {
		live := h.get(boats + ".harbour.test")
		live.Spec.Conversion = makeCRD(boats).Webhook().Obj().Spec.Conversion
		return h.Update(t.Context(), live, client.FieldOwner("fairlead/conversion")) == nil
	})
	h.install(makeCRD(boats).Schema(1).Obj(), crds.Options{}).is(crds.Unchanged, "")
	h.install(makeCRD(boats).Schema(2).Field("crew").Obj(), crds.Options{}).is(crds.Updated, "from schema version 1 to 2")
	if live := h.get(boats + ".harbour.test"); live.Spec.Conversion.Strategy != apiextensionsv1.WebhookConverter {
		t.Error("an update of the schema took the conversion away")
	}
}

func TestConcurrentInstallers(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	boats := h.fresh("boats")
	newest := makeCRD(boats).Schema(2).Field("crew").Obj()
	var all sync.WaitGroup
	for i := range 8 {
		want := newest
		if i%2 == 0 {
			want = makeCRD(boats).Schema(1).Obj()
		}
		all.Go(func() {
			if _, err := install(t.Context(), h.cfg, []*apiextensionsv1.CustomResourceDefinition{want}, crds.Options{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if live := h.get(newest.Name); !same(live, newest) {
		t.Errorf("the cluster is left with schema version %s", live.Annotations[crds.SchemaVersionAnnotation])
	}
}

func TestOvertakenByANewerInstaller(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	boats := h.fresh("boats")
	h.install(makeCRD(boats).Schema(1).Obj(), crds.Options{}).is(crds.Created, "")
	newest := makeCRD(boats).Schema(3).Field("crew").Obj()

	overtaken := make(chan struct{})
	slow := faults.New(faults.Rule{Match: faults.Write, Nth: 1, Action: faults.Hold(overtaken)})
	var results []crds.Result
	var err error
	var older sync.WaitGroup
	older.Go(func() {
		wanted := []*apiextensionsv1.CustomResourceDefinition{makeCRD(boats).Schema(2).Obj()}
		results, err = install(t.Context(), slow.Config(h.cfg), wanted, crds.Options{})
	})
	h.eventually("the older installer to have decided", func() bool { return len(slow.Log()) > 0 })
	h.install(newest, crds.Options{}).is(crds.Updated, "from schema version 1 to 3")
	close(overtaken)
	older.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if results[0].Outcome != crds.NewerInCluster {
		t.Errorf("the older installer: %+v", results[0])
	}
	if !same(h.get(newest.Name), newest) {
		t.Error("the newer schema was overwritten")
	}
}

func applyOwners(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var owners []string
	for _, entry := range crd.ManagedFields {
		if entry.Operation == metav1.ManagedFieldsOperationApply {
			owners = append(owners, entry.Manager)
		}
	}
	return owners
}
