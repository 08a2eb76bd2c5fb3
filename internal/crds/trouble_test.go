package crds

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestNotPermitted(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	boats := h.fresh("boats")
	h.install(makeCRD(boats).Schema(1).Obj(), Options{})
	crews := h.fresh("crews")

	tests := map[string]struct {
		granted []string
		want    *apiextensionsv1.CustomResourceDefinition
		outcome Outcome
		verb    string
	}{
		"nothing":                       {nil, makeCRD(boats).Schema(1).Obj(), Failed, "get"},
		"to read, and one is missing":   {[]string{"get"}, makeCRD(crews).Schema(1).Obj(), Failed, "create"},
		"to patch, and one is missing":  {[]string{"get", "patch"}, makeCRD(crews).Schema(1).Obj(), Failed, "create"},
		"to read, and one is outdated":  {[]string{"get"}, makeCRD(boats).Schema(2).Field("crew").Obj(), Failed, "patch"},
		"to read, and nothing is to do": {[]string{"get"}, makeCRD(boats).Schema(1).Obj(), Unchanged, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := h.as(t, tc.granted...)
			results, err := install(t.Context(), cfg, []*apiextensionsv1.CustomResourceDefinition{tc.want}, Options{})
			if results[0].Outcome != tc.outcome {
				t.Errorf("outcome %s, want %s", results[0].Outcome, tc.outcome)
			}
			var denied *NotPermittedError
			if !errors.As(err, &denied) {
				if tc.verb != "" || err != nil {
					t.Errorf("want a NotPermittedError to %q, got %v", tc.verb, err)
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
		}, Options{})
		if got := strings.Count(fmt.Sprint(err), "not permitted to"); got != 1 {
			t.Errorf("said %d times: %v", got, err)
		}
	})
}

func TestCRDOnItsWayOut(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	boats := h.fresh("boats")
	want := makeCRD(boats).Schema(1).Obj()
	h.install(want, Options{})
	boat := h.launch(boats, "heron", "harbour.test/moored")
	if err := h.Delete(t.Context(), h.get(want.Name)); err != nil {
		t.Fatal(err)
	}

	_, err := install(t.Context(), h.cfg, []*apiextensionsv1.CustomResourceDefinition{want}, Options{Timeout: 2 * time.Second})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want.Name+" is not ready: it is being deleted") {
		t.Errorf("got %v", err)
	}

	released := make(chan error, 1)
	time.AfterFunc(200*time.Millisecond, func() {
		released <- h.Patch(context.Background(), boat, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	})
	results, err := install(t.Context(), h.cfg, []*apiextensionsv1.CustomResourceDefinition{want}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-released; err != nil {
		t.Fatal(err)
	}
	if results[0].Outcome != Created {
		t.Errorf("got %+v", results[0])
	}
}

func TestNamesTaken(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	boats, crews := h.fresh("boats"), h.fresh("crews")
	h.install(makeCRD(boats).Schema(1).Obj(), Options{})
	taken := makeCRD(crews).Schema(1).Obj()
	taken.Spec.Names.Kind = makeCRD(boats).Obj().Spec.Names.Kind
	_, err := install(t.Context(), h.cfg, []*apiextensionsv1.CustomResourceDefinition{taken}, Options{Timeout: 2 * time.Second})
	if err == nil || !strings.Contains(err.Error(), "its names are not accepted") {
		t.Errorf("got %v", err)
	}
}

func TestInvalidCRD(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	boats := h.fresh("boats")
	bad := makeCRD(boats).Schema(1).Obj()
	bad.Spec.Versions[0].Storage = false
	_, err := install(t.Context(), h.cfg, []*apiextensionsv1.CustomResourceDefinition{bad}, Options{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "create CRD "+bad.Name) {
		t.Errorf("got %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	t.Run("nobody listens", func(t *testing.T) {
		gone := httptest.NewServer(http.NotFoundHandler())
		gone.Close()
		results, err := Install(t.Context(), &rest.Config{Host: gone.URL}, Options{})
		if err == nil || !strings.Contains(err.Error(), gone.URL) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("got %v", err)
		}
		if strings.Count(fmt.Sprint(err), "\n") > 0 {
			t.Errorf("one server, but several errors: %v", err)
		}
		for _, result := range results {
			if result.Outcome != Failed {
				t.Errorf("got %+v", result)
			}
		}
	})

	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }))
	t.Cleanup(silent.Close)
	t.Run("nobody answers", func(t *testing.T) {
		_, err := Install(t.Context(), &rest.Config{Host: silent.URL}, Options{Timeout: 100 * time.Millisecond})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), silent.URL) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the caller gives up", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("told to stop")
		time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
		if _, err := Install(ctx, &rest.Config{Host: silent.URL}, Options{}); !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
	})
}
