package member

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// A Job that is removed is remembered as it was last, until another one of its name is read.
func TestRemovedJob(t *testing.T) {
	job := func(uid types.UID) *unstructured.Unstructured {
		u := adoptiontest.Object(t, "Job batch/v1\nstatus: {active: 1}")
		u.SetUID(uid)
		return u
	}
	first := job("first")
	for name, c := range map[string]struct {
		event      any
		then       *unstructured.Unstructured
		asked      *unstructured.Unstructured
		remembered bool
	}{
		"removed":                      {first, nil, first, true},
		"removed after it was read":    {first, job("first"), first, true},
		"removed, and created again":   {first, job("second"), first, false},
		"removed while nobody watched": {toolscache.DeletedFinalStateUnknown{Key: "shop/it", Obj: first}, nil, first, false},
		"an object of another kind":    {adoptiontest.Object(t, "ConfigMap v1"), nil, adoptiontest.Object(t, "ConfigMap v1"), false},
		"metadata only":                {model.NewMetadata(jobKind), nil, first, false},
		"a kind of the same name":      {first, nil, adoptiontest.Object(t, "ConfigMap v1"), false},
		"a Job of another API group":   {first, nil, adoptiontest.Object(t, "Job example.com/v1"), false},
	} {
		t.Run(name, func(t *testing.T) {
			m := &Client{API: adoptiontest.NewAPI(t, nil)}
			m.recordRemoval(c.event)
			if c.then != nil {
				m.API = adoptiontest.NewAPI(t, nil, c.then)
				if _, err := m.Get(t.Context(), c.then); err != nil {
					t.Fatal(err)
				}
			}
			if got := m.RemovedJob(c.asked); (got != nil) != c.remembered {
				t.Errorf("got %v", got)
			}
		})
	}
}

// Removed Jobs are forgotten in time: a cluster may run Jobs of ever new names.
func TestRemovedJobsAreForgotten(t *testing.T) {
	m := &Client{removed: map[client.ObjectKey]removedJob{{Name: "old"}: {newJob(), time.Now().Add(-2 * rememberFor)}, {Name: "new"}: {newJob(), time.Now()}}}
	m.recordRemoval(newJob())
	if _, found := m.removed[client.ObjectKey{Name: "old"}]; found || len(m.removed) != 2 {
		t.Errorf("got %v", m.removed)
	}
}

func TestKeepJobStatus(t *testing.T) {
	full := adoptiontest.Object(t, "Job batch/v1\nmetadata: {uid: u, resourceVersion: '7', labels: {a: b}, annotations: {c: d}}\nspec: {suspend: true}\nstatus: {active: 1}")
	kept, err := keepJobStatus(full)
	want := adoptiontest.Object(t, "Job batch/v1\nmetadata: {uid: u, resourceVersion: '7', labels: {a: b}}\nstatus: {active: 1}")
	if diff := cmp.Diff(want, kept); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	metadata := model.NewMetadata(jobKind)
	if kept, err := keepJobStatus(metadata); kept != any(metadata) || err != nil {
		t.Errorf("got %v, %v", kept, err)
	}
}
