package adoption_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/fairlead/fairlead/test/cluster"
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

// The policy that the design shows, as it shows it: an operator who knows nothing of the resources takes all of them over,
// and no pod notices.
func TestOperatorTakesOverWithAPolicyAlone(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	count := 20
	if os.Getenv("FAIRLEAD_TESTS") == "full" {
		count = 1000
	}
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("shop-%03d", i))
		s.create(t, s.members[member1], deployment(names[i]))
		s.create(t, s.hub, deployment(names[i]))
	}
	before := map[string]*appsv1.Deployment{}
	for _, name := range names {
		before[name] = s.running(t, s.members[member1], name)
	}
	pods := s.pods(t, s.members[member1])
	s.kubectl(t, s.hub, "apply", "-f", "testdata/deployments-pp.yaml")
	p := s.tells(t, "deployments-pp", "Applied", fmt.Sprintf("all %d resources are applied in all of their clusters", count))
	if got := p.Status; got.Matched != int32(count) || got.Applied != int32(count) || got.Conflicting+got.Failed != 0 {
		t.Errorf("the policy counts %+v", got)
	}
	for _, name := range names {
		now := deployment(name)
		s.read(t, s.members[member1], now)
		if !isMarked(now) || now.Generation != before[name].Generation {
			t.Errorf("%s has labels %v, generation %d became %d", name, now.Labels, before[name].Generation, now.Generation)
		}
	}
	if diff := cmp.Diff(pods, s.pods(t, s.members[member1])); diff != "" {
		t.Errorf("pods (-before +after)\n%s", diff)
	}
	for _, want := range []string{"CONFLICT-RESOLUTION", "PRIORITY", "Overwrite"} {
		if table := s.kubectl(t, s.hub, "get", "pp"); !strings.Contains(table, want) {
			t.Errorf("no %s in\n%s", want, table)
		}
	}
}

// The policy and the Deployment that the design shows, as it shows them: most are taken over, and one is left alone.
func TestResourceExceptsItselfFromOverwriting(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	special := parse(t, readFile(t, "testdata/nginx-deployment.yaml"))
	special.SetAnnotations(nil)
	s.create(t, s.members[member1], deployment("usual"), special)
	s.running(t, s.members[member1], "usual")
	before := s.running(t, s.members[member1], "nginx-deployment")
	s.create(t, s.hub, deployment("usual"))
	s.kubectl(t, s.hub, "apply", "-f", "testdata/nginx-deployment.yaml", "-f", "testdata/deployments-pp.yaml")
	s.says(t, "usual-deployment", applied)
	s.trouble(t, member1, "nginx-deployment-deployment", "deployments-pp", conflict, "exists in cluster member1 already, and is left alone")
	now := s.running(t, s.members[member1], "nginx-deployment")
	if now.ResourceVersion != before.ResourceVersion {
		t.Errorf("it was written to: %s became %s", before.ResourceVersion, now.ResourceVersion)
	}
	p := s.tells(t, "deployments-pp", conflict, "1 of 2 resources exist already and are left alone, the first: 0 of 1 clusters run it; Deployment "+s.namespace+"/nginx-deployment exists in cluster member1")
	if got := p.Status; got.Matched != 2 || got.Applied != 1 || got.Conflicting != 1 || got.Failed != 0 {
		t.Errorf("the policy counts %+v", got)
	}
}

// Most are left alone, and one asks to be taken over.
func TestResourceExceptsItselfFromAborting(t *testing.T) {
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
		eventually(t, func(context.Context) error {
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
