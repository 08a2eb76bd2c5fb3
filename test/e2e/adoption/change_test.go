package adoption_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/test/harness/history"
)

// has tells what a ConfigMap lacks.
func has(c *corev1.ConfigMap, key, value string) func() error {
	return func() error {
		if got := c.Data[key]; got != value {
			return fmt.Errorf("%s is %q, and not %q", key, got, value)
		}
		return nil
	}
}

// minReady tells whether a Deployment has followed its template.
func minReady(d *appsv1.Deployment, seconds int32) func() error {
	return func() error {
		if got := d.Spec.MinReadySeconds; got != seconds {
			return fmt.Errorf("minReadySeconds is %d, and not %d", got, seconds)
		}
		return nil
	}
}

func TestManagedObject(t *testing.T) {
	t.Parallel()
	t.Run("follows its template", func(t *testing.T) {
		t.Parallel()
		s := newStage(t)
		s.create(t, s.hub, configMap("it", "a", "1"), policy("v1", "ConfigMap", everywhere))
		s.says(t, "it-configmap", applied)
		s.tells(t, "everything", "Applied")
		template := configMap("it")
		s.change(t, s.hub, template, func() { template.Data["a"] = "2" })
		for _, m := range s.members {
			now := configMap("it")
			s.until(t, m, now, has(now, "a", "2"))
		}
	})
	t.Run("is put back when somebody changes it", func(t *testing.T) {
		t.Parallel()
		s := newStage(t)
		s.create(t, s.hub, configMap("it", "a", "1"), policy("v1", "ConfigMap"))
		s.says(t, "it-configmap", applied)
		now := configMap("it")
		s.change(t, s.members[member1], now, func() { now.Data["a"], now.Data["extra"] = "2", "3" })
		s.until(t, s.members[member1], now, func() error {
			if len(now.Data) != 1 || now.Data["a"] != "1" {
				return fmt.Errorf("it has %v", now.Data)
			}
			return nil
		})
	})
	t.Run("is made again when somebody deletes it", func(t *testing.T) {
		t.Parallel()
		s := newStage(t)
		s.create(t, s.hub, deployment("it"), policy("apps/v1", "Deployment"))
		s.says(t, "it-deployment", applied)
		before := s.running(t, s.members[member1], "it")
		s.remove(t, s.members[member1], deployment("it"))
		now := deployment("it")
		s.until(t, s.members[member1], now, func() error {
			if now.UID == before.UID {
				return errors.New("it is not gone")
			}
			return nil
		})
	})
	t.Run("is made with one write", func(t *testing.T) {
		t.Parallel()
		s := newStage(t)
		written := history.Follow[*appsv1.Deployment](t, s.members[member1], &appsv1.DeploymentList{}, client.InNamespace(s.namespace))
		s.create(t, s.hub, deployment("it"), policy("apps/v1", "Deployment"))
		s.running(t, s.members[member1], "it")
		s.says(t, "it-deployment", applied)
		// When this is there, the operator has looked at the first again.
		s.create(t, s.hub, deployment("next"))
		s.running(t, s.members[member1], "next")
		var made *appsv1.Deployment
		for _, e := range written.Events(t) {
			now := e.Object
			if now.Name != "it" {
				continue
			}
			// Its controller writes the status, and an annotation.
			delete(now.Annotations, "deployment.kubernetes.io/revision")
			if made == nil {
				made = now
			}
			if diff := cmp.Diff(made.Spec, now.Spec) + cmp.Diff(made.Labels, now.Labels) +
				cmp.Diff(made.Annotations, now.Annotations, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("it was written again (-made +now):\n%s", diff)
			}
		}
		if made == nil {
			t.Error("the Deployment was never created")
		}
	})
}

// A conflict is over when the object that was in the way is gone.
func TestBlockerRemoved(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.create(t, s.members[member1], configMap("it", "a", "old"))
	s.create(t, s.hub, configMap("it", "a", "new"), policy("v1", "ConfigMap"))
	s.says(t, "it-configmap", conflict, s.conflicting("ConfigMap", "it"))
	s.remove(t, s.members[member1], configMap("it"))
	now := configMap("it")
	s.until(t, s.members[member1], now, has(now, "a", "new"))
	s.says(t, "it-configmap", applied)
}

func TestPolicyChanged(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.create(t, s.members[member1], deployment("it"))
	before := s.running(t, s.members[member1], "it")
	p := policy("apps/v1", "Deployment")
	s.create(t, s.hub, deployment("it"), p)
	s.says(t, "it-deployment", conflict)
	if now := s.running(t, s.members[member1], "it"); now.ResourceVersion != before.ResourceVersion {
		t.Errorf("it was written to: %s became %s", before.ResourceVersion, now.ResourceVersion)
	}
	t.Run("and takes over what it left alone", func(t *testing.T) {
		s.changePolicy(t, p, overwrite)
		s.says(t, "it-deployment", applied)
	})
	taken := s.running(t, s.members[member1], "it")
	t.Run("and leaves what it has taken over as it is", func(t *testing.T) {
		s.changePolicy(t, p, func(p *policyv1alpha1.PropagationSpec) { p.ConflictResolution = policyv1alpha1.ConflictAbort })
		s.manifest(t, member1, "it-deployment", func(m *unstructured.Unstructured) error {
			if got := m.GetAnnotations()[resolution]; got != "abort" {
				return fmt.Errorf("its Work says %s", got)
			}
			return nil
		})
		s.processed(t, member1, "it-deployment", "AppliedSuccessful")
		s.says(t, "it-deployment", applied)
		if now := s.running(t, s.members[member1], "it"); now.ResourceVersion != taken.ResourceVersion || !isMarked(now) {
			t.Errorf("it was written to: %s became %s", taken.ResourceVersion, now.ResourceVersion)
		}
	})
	t.Run("and goes on managing it", func(t *testing.T) {
		template := deployment("it")
		s.change(t, s.hub, template, func() { template.Spec.MinReadySeconds = 1 })
		now := deployment("it")
		s.until(t, s.members[member1], now, minReady(now, 1))
	})
}
