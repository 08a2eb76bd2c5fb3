package crds

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestLeftBehind(t *testing.T) {
	cases := map[string]struct {
		crd  *crdBuilder
		want []string
	}{
		"only the one that is stored": {makeCRD("boats").Next("v2", "").Stored("v2"), []string{}},
		"an older one too":            {makeCRD("boats").Next("v2", "").Stored("v1", "v2"), []string{"v1"}},
		"several":                     {makeCRD("boats").Next("v2", "").Next("v3", "").Stored("v1", "v2", "v3"), []string{"v1", "v2"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, storedOtherThan(c.crd.Obj(), storageVersion(c.crd.Obj()))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMayForget(t *testing.T) {
	began := makeCRD("boats").Next("v2", "").Stored("v1", "v2").Served().Obj()
	cases := map[string]struct {
		change func(*apiextensionsv1.CustomResourceDefinition)
		want   bool
	}{
		"nothing has changed":           {func(*apiextensionsv1.CustomResourceDefinition) {}, true},
		"its labels have":               {func(crd *apiextensionsv1.CustomResourceDefinition) { crd.ResourceVersion = "900" }, true},
		"its spec has":                  {func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Generation++ }, false},
		"it was deleted and made again": {func(crd *apiextensionsv1.CustomResourceDefinition) { crd.UID = "other" }, false},
		"another version has become stored": {func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Status.StoredVersions = []string{"v1", "v2", "v3"}
		}, false},
		"somebody else was faster in saying": {func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Status.StoredVersions = []string{"v2"} }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			now := began.DeepCopy()
			c.change(now)
			if got := isSameCRD(began, now); got != c.want {
				t.Errorf("may forget: %t", got)
			}
		})
	}
}

// An object that is gone needs nothing; a server that does not serve it yet says nothing about it.
func TestUnserved(t *testing.T) {
	boats := schema.GroupResource{Group: "harbour.test", Resource: "boats"}
	unknown := func(verb, name string) error {
		return apierrors.NewGenericServerResponse(http.StatusNotFound, verb, boats, name, "404 page not found", 0, true)
	}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"gone":       {apierrors.NewNotFound(boats, "heron"), false},
		"no page":    {unknown("list", ""), true},
		"not served": {unknown("patch", "heron"), true},
		"conflict":   {apierrors.NewConflict(boats, "heron", errors.New("changed")), false},
		"nothing":    {nil, false},
	} {
		if got := isNotServed(c.err); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
