package adoption_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// Every cell of the design's table: what the policy says, what the resource says, and what becomes of a Deployment that runs
// already. The last column is a word that means nothing. For a policy of the cluster, which decides alike, one row is enough.
func TestConflictResolution(t *testing.T) {
	t.Parallel()
	cells := map[policyv1alpha1.ConflictResolution]map[string]string{
		"":          {"": "abort", "abort": "abort", "overwrite": "overwrite", "Overwrite": "abort"},
		"Abort":     {"": "abort", "abort": "abort", "overwrite": "overwrite", "Overwrite": "abort"},
		"Overwrite": {"": "overwrite", "abort": "abort", "overwrite": "overwrite", "replace": "overwrite"},
	}
	for _, kind := range []string{"PropagationPolicy", "ClusterPropagationPolicy"} {
		for said, row := range cells {
			if kind == "ClusterPropagationPolicy" && said != "Overwrite" {
				continue
			}
			t.Run(fmt.Sprintf("%s says %q", kind, said), func(t *testing.T) {
				t.Parallel()
				s := newStage(t)
				for annotation := range row {
					s.create(t, s.members[member1], deployment(nameOf(annotation)))
					template := deployment(nameOf(annotation))
					if annotation != "" {
						annotate(template, resolution, annotation)
					}
					s.create(t, s.hub, template)
				}
				before := map[string]client.Object{}
				for annotation := range row {
					before[annotation] = s.running(t, s.members[member1], nameOf(annotation))
				}
				pods := s.pods(t, s.members[member1])
				s.enact(t, kind, said)
				for annotation, effective := range row {
					t.Run(fmt.Sprintf("the resource says %q", annotation), func(t *testing.T) { s.resolved(t, before[annotation], annotation, effective) })
				}
				if diff := cmp.Diff(pods, s.pods(t, s.members[member1])); diff != "" {
					t.Errorf("pods (-before +after)\n%s", diff)
				}
			})
		}
	}
}

func nameOf(annotation string) string {
	return map[string]string{"": "silent", "abort": "kept", "overwrite": "taken", "Overwrite": "misspelt", "replace": "misunderstood"}[annotation]
}

// enact makes a policy of either kind that takes the Deployments of the test.
func (s *stage) enact(t *testing.T, kind string, said policyv1alpha1.ConflictResolution) {
	t.Helper()
	p := policy("apps/v1", "Deployment", func(p *policyv1alpha1.PropagationSpec) { p.ConflictResolution = said })
	if kind == "PropagationPolicy" {
		s.create(t, s.hub, p)
		return
	}
	p.Spec.ResourceSelectors[0].Namespace = s.namespace
	all := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Spec: p.Spec}
	if err := s.hub.Create(t.Context(), all); err != nil {
		t.Fatal(err)
	}
}

// resolved checks what became of a Deployment that ran already.
func (s *stage) resolved(t *testing.T, before client.Object, annotation, effective string) {
	name := before.GetName()
	var notes []string
	if name == "misspelt" || name == "misunderstood" {
		notes = []string{fmt.Sprintf(`annotation %s is %q: write "abort" or "overwrite", or remove the annotation`, resolution, annotation)}
	}
	now := deployment(name)
	if effective == "overwrite" {
		s.says(t, name+"-deployment", applied, append(notes, "applied in cluster "+member1)...)
		s.read(t, s.members[member1], now)
		if !isMarked(now) || now.Generation != before.GetGeneration() || now.UID != before.GetUID() {
			t.Errorf("labels %v, generation %d became %d", now.Labels, before.GetGeneration(), now.Generation)
		}
	} else {
		s.says(t, name+"-deployment", conflict, append(notes, s.conflicting("Deployment", name))...)
		s.read(t, s.members[member1], now)
		if now.ResourceVersion != before.GetResourceVersion() {
			t.Errorf("it was written to: %s became %s", before.GetResourceVersion(), now.ResourceVersion)
		}
	}
	s.manifest(t, member1, name+"-deployment", func(m *unstructured.Unstructured) error {
		if got := m.GetAnnotations()[resolution]; got != effective {
			return fmt.Errorf("its Work says %s", got)
		}
		return nil
	})
}

// conflicting is what is said of an object that runs already and is left alone.
func (s *stage) conflicting(kind, name string) string {
	return fmt.Sprintf("applied in 0 of 1 clusters; %s %s/%s exists in cluster %s already, and is left alone: "+
		"set conflictResolution of the policy to Overwrite, or annotate the resource with %s: overwrite, to take over the object; or delete the object in the cluster",
		kind, s.namespace, name, member1, resolution)
}
