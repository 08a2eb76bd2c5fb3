package crds_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/test/harness/wait"
)

func TestForbidden(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	boats := h.fresh("boats")
	h.install(makeCRD(boats).Schema(1).Obj(), crds.Options{})
	crews := h.fresh("crews")

	tests := map[string]struct {
		granted []string
		want    *apiextensionsv1.CustomResourceDefinition
		outcome crds.Outcome
		verb    string
	}{
		"nothing":                       {nil, makeCRD(boats).Schema(1).Obj(), crds.Failed, "get"},
		"to read, and one is missing":   {[]string{"get"}, makeCRD(crews).Schema(1).Obj(), crds.Failed, "create"},
		"to patch, and one is missing":  {[]string{"get", "patch"}, makeCRD(crews).Schema(1).Obj(), crds.Failed, "create"},
		"to read, and one is outdated":  {[]string{"get"}, makeCRD(boats).Schema(2).Field("crew").Obj(), crds.Failed, "patch"},
		"to read, and nothing is to do": {[]string{"get"}, makeCRD(boats).Schema(1).Obj(), crds.Unchanged, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := h.as(t, tc.granted...)
			results, err := install(t.Context(), cfg, []*apiextensionsv1.CustomResourceDefinition{tc.want}, crds.Options{})
			if results[0].Outcome != tc.outcome {
				t.Errorf("outcome %s, want %s", results[0].Outcome, tc.outcome)
			}
			var denied *crds.NotPermittedError
			if !errors.As(err, &denied) {
				if tc.verb != "" || err != nil {
					t.Errorf("want a crds.NotPermittedError to %q, got %v", tc.verb, err)
				}
				return
			}
			if denied.Verb != tc.verb || !slices.Equal(denied.CRDs, []string{tc.want.Name}) || !apierrors.IsForbidden(err) {
				t.Errorf("want a refusal to %s %s, got %+v", tc.verb, tc.want.Name, denied)
			}
			for _, part := range []string{tc.verb, "customresourcedefinitions.apiextensions.k8s.io", cfg.Impersonate.UserName,
				"grant get, create and patch", "fairlead crds install", "--install-crds=false"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not speak of %q: %v", part, err)
				}
			}
		})
	}

	t.Run("several are one refusal", func(t *testing.T) {
		_, err := install(t.Context(), h.as(t), []*apiextensionsv1.CustomResourceDefinition{
			makeCRD(boats).Schema(1).Obj(), makeCRD(crews).Schema(1).Obj(),
		}, crds.Options{})
		if got := strings.Count(fmt.Sprint(err), "not permitted to"); got != 1 {
			t.Errorf("said %d times: %v", got, err)
		}
	})
}

func TestTerminatingCRD(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	boats := h.fresh("boats")
	want := makeCRD(boats).Schema(1).Obj()
	h.install(want, crds.Options{})
	boat := h.launch(boats, "heron", "harbour.test/moored")
	if err := h.Delete(t.Context(), h.get(want.Name)); err != nil {
		t.Fatal(err)
	}

	h.expires(want, "is not ready: the CRD is being deleted")

	var looks atomic.Int32
	watched := faults.New(faults.Rule{Match: func(r faults.Request) bool {
		if r.Verb == "get" && r.Name == want.Name {
			looks.Add(1)
		}
		return false
	}})
	var results []crds.Result
	var err error
	var installer sync.WaitGroup
	installer.Go(func() {
		wanted := []*apiextensionsv1.CustomResourceDefinition{want}
		results, err = install(t.Context(), watched.Config(h.cfg), wanted, crds.Options{})
	})
	h.eventually("the installer to look again", func() bool { return looks.Load() >= 2 })
	if err := h.Patch(t.Context(), boat, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	installer.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if results[0].Outcome != crds.Created {
		t.Errorf("got %+v", results[0])
	}
}

func TestNameConflict(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	boats, crews := h.fresh("boats"), h.fresh("crews")
	h.install(makeCRD(boats).Schema(1).Obj(), crds.Options{})
	taken := makeCRD(crews).Schema(1).Obj()
	taken.Spec.Names.Kind = makeCRD(boats).Obj().Spec.Names.Kind
	h.expires(taken, "the names of the CRD are not accepted")
}

// expires demands that the time of an install runs out, and that its error says what it waited for. On a slow machine, the
// time may be over before there was anything to see, and then it gets more.
func (h *hub) expires(want *apiextensionsv1.CustomResourceDefinition, message string) {
	h.t.Helper()
	timeout := 500 * time.Millisecond
	wait.Until(h.t, func(ctx context.Context) error {
		timeout *= 2
		_, err := install(ctx, h.cfg, []*apiextensionsv1.CustomResourceDefinition{want}, crds.Options{Timeout: timeout})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want.Name) || !strings.Contains(err.Error(), message) {
			return fmt.Errorf("got %w, want that the time is over and %q", err, message)
		}
		return nil
	})
}

func TestInvalidCRD(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	boats := h.fresh("boats")
	bad := makeCRD(boats).Schema(1).Obj()
	bad.Spec.Versions[0].Storage = false
	_, err := install(t.Context(), h.cfg, []*apiextensionsv1.CustomResourceDefinition{bad}, crds.Options{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "create CRD "+bad.Name) {
		t.Errorf("got %v", err)
	}
}
