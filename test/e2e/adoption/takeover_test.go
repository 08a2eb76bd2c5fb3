package adoption_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// kubectl is Kubernetes' own, in the test's namespace.
func (s *stage) kubectl(t testing.TB, where *site, args ...string) string {
	t.Helper()
	output, err := cluster.Localkube(append([]string{"kubectl", "--kubeconfig", where.Kubeconfig(), "-n", s.namespace}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// The policy and the Deployment that the design shows, as it shows them. One policy takes over all that runs, and no pod
// notices; one resource asks to be left alone, and is, until it no longer asks.
func TestStoryTakeover(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	west := s.members[member1]
	count := 20
	if faults.Full() {
		count = 1000
	}
	special := parse(t, readFile(t, "testdata/nginx-deployment.yaml"))
	special.SetAnnotations(nil)
	s.create(t, west, special)
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("shop-%03d", i))
		s.create(t, west, deployment(names[i]))
		s.create(t, s.hub, deployment(names[i]))
	}
	before := map[string]*appsv1.Deployment{}
	for _, name := range append(names, special.GetName()) {
		before[name] = s.running(t, west, name)
	}
	pods := s.pods(t, west)

	s.kubectl(t, s.hub, "apply", "-f", "testdata/nginx-deployment.yaml", "-f", "testdata/deployments-pp.yaml")
	s.trouble(t, member1, "nginx-deployment-deployment", "deployments-pp", conflict, "exists in cluster member1 already, and is left alone")
	s.counts(t, "deployments-pp", policyv1alpha1.PropagationStatus{Matched: int32(count + 1), Applied: int32(count), Conflicting: 1})
	s.tells(t, "deployments-pp", conflict, fmt.Sprintf("1 of %d resources exist already and are left alone, the first: applied in 0 of 1 clusters; Deployment %s/nginx-deployment exists in cluster member1", count+1, s.namespace))
	for _, name := range names {
		now := deployment(name)
		s.read(t, west, now)
		if !isMarked(now) || now.Generation != before[name].Generation {
			t.Errorf("%s has labels %v, generation %d became %d", name, now.Labels, before[name].Generation, now.Generation)
		}
	}
	left := deployment(special.GetName())
	s.read(t, west, left)
	if was := before[left.Name]; left.ResourceVersion != was.ResourceVersion {
		t.Errorf("it was written to: %s became %s", was.ResourceVersion, left.ResourceVersion)
	}
	series := fmt.Sprintf(`fairlead_adoption_resources{namespace=%q,policy="deployments-pp",state="conflicting"}`, s.namespace)
	s.operator.Measures(t, series, func(n float64) bool { return n == 1 })
	s.operator.Measures(t, `fairlead_adoption_leftovers{cluster="`+member1+`"}`, func(float64) bool { return true })
	s.operator.CompareMetrics(t, "adoption")
	harness.Traces().HasStages(t, "adoption-work")
	for _, want := range []string{"CONFLICT-RESOLUTION", "PRIORITY", "Overwrite"} {
		if table := s.kubectl(t, s.hub, "get", "pp"); !strings.Contains(table, want) {
			t.Errorf("no %s in\n%s", want, table)
		}
	}

	template := deployment(special.GetName())
	s.change(t, s.hub, template, func() { delete(template.Annotations, resolution) })
	s.tells(t, "deployments-pp", "Applied", fmt.Sprintf("all %d resources are applied in all of their clusters", count+1))
	s.read(t, west, left)
	if !isMarked(left) || left.Generation != before[left.Name].Generation {
		t.Errorf("labels %v, generation %d became %d", left.Labels, before[left.Name].Generation, left.Generation)
	}
	if diff := cmp.Diff(pods, s.pods(t, west)); diff != "" {
		t.Errorf("pods (-before +after)\n%s", diff)
	}
}

// counts waits until a policy counts its resources so.
func (s *stage) counts(t testing.TB, name string, want policyv1alpha1.PropagationStatus) {
	t.Helper()
	p := policy("", "")
	p.Name = name
	s.until(t, s.hub, p, func() error {
		if got := p.Status; got.Matched != want.Matched || got.Applied != want.Applied || got.Conflicting != want.Conflicting || got.Failed != want.Failed {
			return fmt.Errorf("the policy counts %+v", got)
		}
		return nil
	})
}

// The annotation of a resource overrides the conflict resolution Abort of the policy.
func TestConflictResolutionOfResource(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.create(t, s.members[member1], deployment("usual"), deployment("special"))
	usual, special := s.running(t, s.members[member1], "usual"), s.running(t, s.members[member1], "special")
	s.create(t, s.hub, deployment("usual"), deployment("special", annotated(resolution, "overwrite")), policy("apps/v1", "Deployment"))
	s.says(t, "special-deployment", applied)
	s.says(t, "usual-deployment", conflict, s.conflicting("Deployment", "usual"))
	if now := s.running(t, s.members[member1], "usual"); now.ResourceVersion != usual.ResourceVersion {
		t.Errorf("it was written to: %s became %s", usual.ResourceVersion, now.ResourceVersion)
	}
	if now := s.running(t, s.members[member1], "special"); !isMarked(now) || now.Generation != special.Generation {
		t.Errorf("labels %v, generation %d became %d", now.Labels, special.Generation, now.Generation)
	}
	t.Run("until the resource asks for the other, too", func(t *testing.T) {
		d := deployment("usual")
		s.change(t, s.hub, d, func() { annotate(d, resolution, "overwrite") })
		s.says(t, "usual-deployment", applied)
	})
	t.Run("and the clusters' own word on it is told", func(t *testing.T) {
		wait.Until(t, func(context.Context) error {
			b := s.says(t, "usual-deployment", applied)
			if all := b.Status.AggregatedStatus; len(all) != 1 || !all[0].Applied || all[0].Health != "Healthy" || all[0].Status == nil {
				return fmt.Errorf("it says %+v", all)
			}
			return nil
		})
	})
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func writeFile(t testing.TB, text string) string {
	t.Helper()
	path := t.TempDir() + "/object.yaml"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
