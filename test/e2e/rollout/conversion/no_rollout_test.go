package conversion_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// TestNoUnrequestedRollout disturbs the operator, so it is not parallel to any other. Whatever happens, the same pods go on to
// run, and nobody asks for a rollout.
func TestNoUnrequestedRollout(t *testing.T) {
	w := theWorld(t)
	all := map[string]*unchanged{}
	for name, apply := range ways {
		all["v1alpha1, applied "+name] = newUnchanged(t, w.inheritedAs(t, "never by accident, applied "+name), older, apply)
		all["v1alpha2, applied "+name] = newUnchanged(t, w.deployed(t, apply, written(newer).withRole()), newer, apply)
	}
	for _, accident := range []struct {
		name   string
		happen func(*testing.T, *world)
	}{
		{"upgrade", func(*testing.T, *world) {}}, // it has come about with the world
		{"operator restart", restart},
		{"leader change", changeLeader},
		{"CRD update", updateCRD},
		{"storage migration", migrateStorage},
	} {
		t.Run(accident.name, func(t *testing.T) {
			accident.happen(t, w)
			for name, c := range all {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					c.check(t)
				})
			}
		})
	}
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run("excluded field", c.changeExcluded)
			t.Run("re-apply of the same manifest", c.reapply)
		})
	}
}

// unchanged is an environment to which nothing may happen.
type unchanged struct {
	*environment
	version string
	apply   way
	status  v1alpha2.MaterializeStatus
	story   []string
}

func newUnchanged(t *testing.T, e *environment, version string, apply way) *unchanged {
	t.Helper()
	c := &unchanged{environment: e, version: version, apply: apply, status: e.serves(t, 1, "v1").Status, story: e.history()}
	if version == newer {
		running, err := e.running(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		e.before = running
	} else if len(c.story) > 0 {
		t.Errorf("what serves was touched when Fairlead came: %v", c.story)
	}
	return c
}

// check waits until the operator has looked, and then looks whether anything has happened.
func (c *unchanged) check(t *testing.T) {
	t.Helper()
	m := c.lookedAt(t)
	want, got := c.status, m.Status
	want.Conditions, want.ObservedGeneration, got.Conditions, got.ObservedGeneration = nil, 0, nil, 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the status has changed: %s", diff)
	}
	if was, is := condition(&v1alpha2.Materialize{Status: c.status}), condition(m); !was.LastTransitionTime.Equal(&is.LastTransitionTime) {
		t.Errorf("there was a transition at %s: %s", is.LastTransitionTime, is.Message)
	}
	c.untouched(t, c.before)
	if diff := cmp.Diff(c.story, c.history()); diff != "" {
		t.Errorf("another story: %s", diff)
	}
}

// lookedAt gives the operator something to do that is no rollout, and waits until that is done.
func (c *unchanged) lookedAt(t *testing.T) *v1alpha2.Materialize {
	t.Helper()
	replicas := 1 - ptr.Deref(c.now(t).Spec.ConsoleReplicas, 0)
	c.patch(t, newer, fmt.Sprintf(`{"spec":{"consoleReplicas":%d}}`, replicas))
	wait.Until(t, func(ctx context.Context) error {
		var d appsv1.Deployment
		if err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: "mz" + c.status.ResourceID + "-console"}, &d); err != nil {
			return err
		}
		if got := ptr.Deref(d.Spec.Replicas, 1); got != replicas {
			return fmt.Errorf("the console has %d replicas, want %d", got, replicas)
		}
		return nil
	})
	return c.serves(t, 1, "v1")
}

// changeExcluded changes what needs no rollout, through both versions.
func (c *unchanged) changeExcluded(t *testing.T) {
	for _, version := range []string{older, newer} {
		c.patch(t, version, `{"spec":{"balancerdReplicas":0,"forcePromote":"nothing",
			"consoleResourceRequirements":{"limits":{"memory":"1Gi"}},"balancerdResourceRequirements":{"limits":{"memory":"1Gi"}}}}`)
		c.check(t)
		c.patch(t, version, `{"spec":{"balancerdReplicas":1,"forcePromote":null,"consoleResourceRequirements":null,"balancerdResourceRequirements":null}}`)
		c.check(t)
	}
}

// reapply says the same in either version, in every way, by several field managers, in full and in part.
func (c *unchanged) reapply(t *testing.T) {
	part := manifest{newer, map[string]any{"rolloutStrategy": "WaitUntilReady", "rolloutRequestTimeout": "1440m"}}
	in := func(version string) manifest { return written(version).withRole() }
	for _, step := range []struct {
		what     string
		apply    way
		manifest manifest
	}{
		{"in its own version", c.apply, in(c.version)},
		{"in the older one, client-side", clientSide, in(older)},
		{"in the newer one, client-side", clientSide, in(newer)},
		{"by Terraform, in the older one", serverSide("terraform"), in(older).with("requestRollout", secondRequest)},
		{"by Terraform, in the newer one", serverSide("terraform"), in(newer)},
		{"by Terraform, in the older one again", serverSide("terraform"), in(older)},
		{"by Argo, in the newer one", serverSide("argo"), in(newer).with("environmentdExtraArgs", []any{}).with("enableRbac", false)},
		{"by Argo, in the older one", serverSide("argo"), in(older).with("inPlaceRollout", true).with("requestRollout", thirdRequest)},
		{"in part", serverSide("people"), part},
		{"in part, in the older one", serverSide("people"), manifest{older, part.spec}},
		{"in its own version again", c.apply, in(c.version).without("balancerdReplicas")},
	} {
		if err := step.apply(t.Context(), c.environment, step.manifest); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		t.Run(step.what, c.check)
	}
}

// relieve waits until another operator than before leads and converts.
func (w *world) relieve(t *testing.T, by *inProcessOperator) {
	t.Helper()
	w.operator.end()
	w.operator = by
	by.keepLogOnFailure(t)
	wait.Until(t, by.says("leading"))
	wait.Until(t, func(ctx context.Context) error { return errors.Join(w.served(ctx), w.migrated(ctx)) })
}

func restart(t *testing.T, w *world) {
	w.operator.end()
	w.relieve(t, w.begin())
}

func changeLeader(t *testing.T, w *world) {
	second := w.begin()
	wait.Until(t, second.says("ready"))
	w.relieve(t, second)
}

// updateCRD has a field come that only a later Fairlead knows, and go with a restart of this one.
func updateCRD(t *testing.T, w *world) {
	fields := func(crd *apiextensionsv1.CustomResourceDefinition, change func(map[string]apiextensionsv1.JSONSchemaProps)) {
		for _, version := range crd.Spec.Versions {
			change(version.Schema.OpenAPIV3Schema.Properties["spec"].Properties)
		}
	}
	wait.Until(t, func(ctx context.Context) error {
		crd, err := w.crd(ctx)
		if err != nil {
			return err
		}
		fields(crd, func(all map[string]apiextensionsv1.JSONSchemaProps) {
			all["later"] = apiextensionsv1.JSONSchemaProps{Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"than you think"`)}}
		})
		return w.Update(ctx, crd)
	})
	wait.Until(t, func(ctx context.Context) error {
		for _, version := range []string{older, newer} {
			object := manifest{version: version}.object(w.inheritedAs(t, "never by accident, applied client-side").namespace)
			if err := w.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
			if spec := object.Object["spec"].(map[string]any); spec["later"] == nil {
				return fmt.Errorf("%s has no such field", version)
			}
		}
		return nil
	})
	restart(t, w)
	crd, err := w.crd(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fields(crd, func(all map[string]apiextensionsv1.JSONSchemaProps) {
		if _, found := all["later"]; found {
			t.Error("the operator has not set its CRD right")
		}
	})
}

// migrateStorage has every object rewritten, whatever it is stored as.
func migrateStorage(t *testing.T, w *world) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = crdName
	both := fmt.Appendf(nil, `{"status":{"storedVersions":[%q,%q]}}`, older, newer)
	if err := w.Status().Patch(t.Context(), crd, client.RawPatch(types.MergePatchType, both)); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(crd.Status.StoredVersions, older) {
		t.Fatalf("the stored versions are %v", crd.Status.StoredVersions)
	}
	if result := harness.RunCommand(t, w.Cluster, "crds", "migrate", crdName); result.Code != 0 {
		t.Fatalf("crds migrate ended with %d: %s%s", result.Code, result.Stdout, result.Stderr)
	}
	if err := w.migrated(t.Context()); err != nil {
		t.Error(err)
	}
}
