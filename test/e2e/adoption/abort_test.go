package adoption_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

const aborted = "fairlead.dev/aborted"

// records are the Secrets of what was there before, of a binding.
func (s *stage) records(ctx context.Context, member, binding string) (int, error) {
	w, err := s.work(ctx, member, binding)
	if err != nil {
		return 0, err
	}
	var all corev1.SecretList
	if err := s.hub.List(ctx, &all, client.InNamespace("karmada-es-"+member), client.HasLabels{"fairlead.dev/undo"}); err != nil {
		return 0, err
	}
	n := 0
	for _, secret := range all.Items {
		if secret.Name == "before-"+w.Name {
			n++
		}
	}
	return n, nil
}

// A policy that is aborted lets go of everything, and what its takeover changed is as it was before.
func TestStoryAbort(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	west := s.members[member1]
	old := deployment("changed", annotated("team", "sea"))
	old.Labels = map[string]string{"tier": "front"}
	old.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "EXTRA", Value: "1"}}
	s.create(t, west, old, deployment("equal"))
	before := s.running(t, west, "changed")
	equal, pods := s.running(t, west, "equal"), s.podsOf(t, west, "equal")
	template := deployment("changed")
	template.Labels = map[string]string{"from": "hub"}
	s.create(t, s.hub, template, deployment("equal"), deployment("made"), policy("apps/v1", "Deployment", overwrite))
	for _, name := range []string{"changed", "equal", "made"} {
		s.says(t, name+"-deployment", applied)
	}
	taken := deployment("changed")
	s.read(t, west, taken)
	if len(taken.Spec.Template.Spec.Containers[0].Env) > 0 || taken.Labels["from"] != "hub" || taken.Annotations["team"] != "sea" {
		t.Errorf("it was not taken over: %+v", taken)
	}
	for name, want := range map[string]int{"changed": 1, "equal": 0, "made": 0} {
		if n, err := s.records(t.Context(), member1, name+"-deployment"); err != nil || n != want {
			t.Errorf("of %s, %d were kept, and not %d: %v", name, n, want, err)
		}
	}
	// What is released is counted by what the policy had before.
	s.tells(t, "everything", "Applied", "all 3 resources are applied")

	r := harness.RunCommand(t, s.hub.Cluster, "abort", "pp", "everything", "-n", s.namespace, "--yes")
	if r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	for _, text := range []string{"releases 3 objects in 1 cluster", "1 of them changed"} {
		if !strings.Contains(strings.Join(strings.Fields(r.Stdout), " "), text) {
			t.Errorf("nowhere is %q: %s", text, r.Stdout)
		}
	}
	if r := harness.RunCommand(t, s.hub.Cluster, "watch", "pp", "everything", "-n", s.namespace, "--wait", "--timeout", wait.Deadline().String()); r.Code != 0 || !strings.Contains(r.Stdout, "3 of 3 released") {
		t.Errorf("it is not followed until everything is put back: %s%s", r.Stdout, r.Stderr)
	}
	s.tells(t, "everything", "Aborted", "are released and their originals restored; remove annotation "+aborted+" to start again")
	now := s.running(t, west, "changed")
	if diff := cmp.Diff(before.Spec, now.Spec); diff != "" {
		t.Errorf("it is not what it was (-before +now):\n%s", diff)
	}
	if diff := cmp.Diff(before.Labels, now.Labels); diff != "" {
		t.Errorf("its labels are not what they were (-before +now):\n%s", diff)
	}
	if now.UID != before.UID || now.Annotations["team"] != "sea" {
		t.Errorf("it is another: %+v", now.ObjectMeta)
	}
	untouched := s.running(t, west, "equal")
	if untouched.Generation != equal.Generation {
		t.Errorf("generation %d became %d", equal.Generation, untouched.Generation)
	}
	for _, name := range []string{"changed", "equal", "made"} {
		d := s.running(t, west, name)
		if err := isClean(d); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		s.released(t, name+"-deployment")
	}
	if diff := cmp.Diff(pods, s.podsOf(t, west, "equal")); diff != "" {
		t.Errorf("pods of the one that did not change (-before +after)\n%s", diff)
	}

	t.Run("again", func(t *testing.T) {
		p := policy("", "")
		s.change(t, s.hub, p, func() { delete(p.Annotations, aborted) })
		for _, name := range []string{"changed", "equal", "made"} {
			s.says(t, name+"-deployment", applied)
		}
		s.tells(t, "everything", "Applied", "all 3 resources are applied")
	})
}

// A policy that is paused writes nothing to clusters, and goes on when it is resumed.
func TestPause(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.create(t, s.hub, configMap("it", "a", "1"), policy("v1", "ConfigMap"))
	s.says(t, "it-configmap", applied)
	if r := harness.RunCommand(t, s.hub.Cluster, "pause", "pp", "everything", "-n", s.namespace); r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	s.says(t, "it-configmap", "DispatchingSuspended")
	template, now := configMap("it"), configMap("it")
	s.change(t, s.hub, template, func() { template.Data["a"] = "2" })
	s.manifest(t, member1, "it-configmap", hasData("2"))
	s.processed(t, member1, "it-configmap", "DispatchingSuspended")
	s.read(t, s.members[member1], now)
	if now.Data["a"] != "1" {
		t.Errorf("it was written: %v", now.Data)
	}
	if r := harness.RunCommand(t, s.hub.Cluster, "resume", "pp", "everything", "-n", s.namespace); r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	s.until(t, s.members[member1], now, has(now, "a", "2"))
}

func hasData(a string) func(*unstructured.Unstructured) error {
	return func(o *unstructured.Unstructured) error {
		if value, _, _ := unstructured.NestedString(o.Object, "data", "a"); value != a {
			return fmt.Errorf("it has %s", value)
		}
		return nil
	}
}

// Where another policy takes what the aborted or deleted one had, nothing that runs is deleted for it.
func TestTakeoverByAnotherPolicy(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *stage){
		"when the first is aborted": func(t *testing.T, s *stage) {
			if r := harness.RunCommand(t, s.hub.Cluster, "abort", "pp", "first", "-n", s.namespace, "--yes"); r.Code != 0 {
				t.Fatal(r.Stderr)
			}
		},
		"when the first is deleted": func(t *testing.T, s *stage) {
			p := policy("", "")
			p.Name = "first"
			s.remove(t, s.hub, p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.create(t, s.members[member1], configMap("it", "a", "mine"))
			first, second := policy("v1", "ConfigMap", overwrite), policy("v1", "ConfigMap")
			first.Name, second.Name = "first", "second"
			second.Spec.Placement = to(member2)
			s.create(t, s.hub, configMap("it", "a", "hub"), first)
			s.says(t, "it-configmap", applied)
			s.create(t, s.hub, second)
			end(t, s)
			now := configMap("it")
			s.until(t, s.members[member2], now, has(now, "a", "hub"))
			s.until(t, s.members[member1], now, func() error { return isClean(now) })
			if want := map[string]string{"when the first is aborted": "mine", "when the first is deleted": "hub"}[name]; now.Data["a"] != want {
				t.Errorf("it has %v, and not %s", now.Data, want)
			}
		})
	}
}
