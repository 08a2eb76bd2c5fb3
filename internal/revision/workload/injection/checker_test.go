package injection

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// server answers dry runs, and has one webhook for the revision.
type server struct {
	client.Client
	answer     func(pod *corev1.Pod) error
	generation int64
	asked      []string
}

func (s *server) Create(_ context.Context, object client.Object, options ...client.CreateOption) error {
	var how client.CreateOptions
	how.ApplyOptions(options)
	pod := object.(*corev1.Pod)
	text := fmt.Sprint(pod.Namespace, " ", pod.Labels)
	if !slices.Equal(how.DryRun, []string{metav1.DryRunAll}) {
		text += " for real"
	}
	s.asked = append(s.asked, text)
	if pod.Labels[v1.LabelSidecarInject] == "false" && s.generation > 0 {
		return nil
	}
	return s.answer(pod)
}

func (s *server) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	hook := Webhooks()
	hook.UID, hook.Generation = "hook", s.generation
	list.(*metav1.PartialObjectMetadataList).Items = []metav1.PartialObjectMetadata{*hook}
	return nil
}

func injected(pod *corev1.Pod) error {
	pod.Annotations = map[string]string{v1.AnnotationRevision: target}
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: sidecarName})
	return nil
}

func refused(err error) func(*corev1.Pod) error { return func(*corev1.Pod) error { return err } }

func in(namespaces ...string) Request {
	return Request{Istio: "default", Revision: target, Ways: []Way{target}, Namespaces: map[Way][]string{target: namespaces}}
}

func TestCheckerRemembers(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	s := &server{answer: injected, generation: 1}
	c := NewChecker(s, s, func() time.Time { return now })
	check := func(want Verdict, requests int) Result {
		t.Helper()
		s.asked = nil
		results, err := c.Check(t.Context(), in(system))
		if err != nil {
			t.Fatal(err)
		}
		if got := results[target]; got.Verdict != want || len(s.asked) != requests {
			t.Fatalf("after %v: got %+v, want %s after %d requests", s.asked, got, want, requests)
		}
		return results[target]
	}
	check(Injects, 1)
	check(Injects, 0)
	now = now.Add(validity - time.Second)
	check(Injects, 0)
	now = now.Add(time.Second)
	check(Injects, 1)

	t.Log("changed webhooks are checked again, once a second")
	s.generation, s.answer = 2, refused(unreachable)
	check(Injects, 0)
	now = now.Add(minInterval)
	check(Fails, 2)

	t.Log("failures are checked less and less often")
	var delays []time.Duration
	for range 7 {
		result := check(Fails, 0)
		delays = append(delays, result.RetryAt.Sub(now))
		now = result.RetryAt.Add(-time.Millisecond)
		check(Fails, 0)
		now = result.RetryAt
		check(Fails, 2)
	}
	seconds := func(n time.Duration) time.Duration { return n * time.Second }
	want := []time.Duration{seconds(2), seconds(4), seconds(8), seconds(16), seconds(30), seconds(30), seconds(30)}
	if diff := cmp.Diff(want, delays); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	t.Log("mended webhooks are seen at once")
	now = now.Add(minInterval)
	s.generation, s.answer = 3, injected
	check(Injects, 1)
	c.Forget("default")
	check(Injects, 1)
}

func TestCheckerTriesNamespaces(t *testing.T) {
	for name, test := range map[string]struct {
		namespaces []string
		answers    map[string]error
		// strict namespaces refuse the pod that no injector selects, too.
		strict bool
		want   Verdict
		asked  int
	}{
		"the first":                        {[]string{system, "a"}, nil, false, Injects, 1},
		"the second, if one has a policy":  {[]string{system, "a"}, map[string]error{system: security}, false, Injects, 3},
		"the second, if one has a quota":   {[]string{system, "a"}, map[string]error{system: quota}, true, Injects, 3},
		"no more than three":               {[]string{"a", "b", "c", "d"}, map[string]error{"a": quota, "b": quota, "c": quota}, true, Unchecked, 6},
		"a failure counts more":            {[]string{"a", "b"}, map[string]error{"a": denied, "b": denied}, false, Fails, 4},
		"none for a webhook that is down":  {[]string{"a", "b"}, map[string]error{"a": unreachable}, false, Fails, 2},
		"none without permission":          {[]string{"a", "b"}, map[string]error{"a": noRole}, true, Unchecked, 2},
		"none that leaves pods the choice": {nil, nil, false, Unchecked, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{generation: 1, answer: func(pod *corev1.Pod) error {
				if err := test.answers[pod.Namespace]; err != nil {
					return err
				}
				return injected(pod)
			}}
			if test.strict {
				s.generation = 0
			}
			results, err := NewChecker(s, s, time.Now).Check(t.Context(), in(test.namespaces...))
			if got := results[target]; err != nil || got.Verdict != test.want || len(s.asked) != test.asked {
				t.Errorf("got %+v after %v: %v", got, s.asked, err)
			}
		})
	}
}

func TestCheckerLabels(t *testing.T) {
	s := &server{generation: 1, answer: injected}
	request := Request{Istio: "default", Revision: target, Ways: []Way{Default}, Namespaces: map[Way][]string{Default: {system}}}
	if _, err := NewChecker(s, s, time.Now).Check(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	request.Ways, request.Namespaces = []Way{"prod"}, map[Way][]string{"prod": {system}}
	s.answer = refused(denied)
	if _, err := NewChecker(s, s, time.Now).Check(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"istio-system map[sidecar.istio.io/inject:true]", "istio-system map[istio.io/rev:prod]", "istio-system map[sidecar.istio.io/inject:false]",
	}
	if diff := cmp.Diff(want, s.asked); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestLeavesChoice(t *testing.T) {
	for _, test := range []struct {
		namespace string
		labels    map[string]string
		want      bool
	}{
		{system, nil, true},
		{system, map[string]string{"team": "red"}, true},
		{system, map[string]string{v1.LabelInjection: v1.InjectionDisabled}, false},
		{system, map[string]string{v1.LabelInjection: v1.InjectionEnabled}, false},
		{system, map[string]string{v1.LabelRevision: "prod"}, false},
		{"kube-system", nil, false},
	} {
		if got := LeavesChoice(test.namespace, test.labels); got != test.want {
			t.Errorf("%s %v: got %t", test.namespace, test.labels, got)
		}
	}
}
