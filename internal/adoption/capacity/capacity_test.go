package capacity

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func parse[T any](t *testing.T, text string) T {
	t.Helper()
	var value T
	if err := yaml.UnmarshalStrict([]byte(text), &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}

func describe(list corev1.ResourceList) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity := list[name]
		all = append(all, string(name)+"="+quantity.String())
	}
	return strings.Join(all, " ")
}

func TestPodRequests(t *testing.T) {
	for spec, want := range map[string]string{
		`{containers: [{name: a}]}`: "",
		`{containers: [{name: a, resources: {requests: {cpu: 100m, memory: 1Gi}}}, {name: b, resources: {requests: {cpu: 200m}}}]}`:                                      "cpu=300m memory=1Gi",
		`{containers: [{name: a, resources: {limits: {cpu: "1", memory: 1Gi}, requests: {cpu: 100m}}}]}`:                                                                 "cpu=100m memory=1Gi",
		`{containers: [{name: a, resources: {requests: {cpu: 100m}}}], initContainers: [{name: i, resources: {requests: {cpu: "1"}}}]}`:                                  "cpu=1",
		`{containers: [{name: a, resources: {requests: {cpu: 100m}}}], initContainers: [{name: s, restartPolicy: Always, resources: {requests: {cpu: "1"}}}]}`:           "cpu=1100m",
		`{containers: [{name: a}], initContainers: [{name: s, restartPolicy: Always, resources: {requests: {cpu: "1"}}}, {name: i, resources: {requests: {cpu: "2"}}}]}`: "cpu=3",
		`{containers: [{name: a}], initContainers: [{name: i, resources: {requests: {cpu: "2"}}}, {name: s, restartPolicy: Always, resources: {requests: {cpu: "1"}}}]}`: "cpu=2",
		`{containers: [{name: a, resources: {requests: {cpu: 100m}}}], overhead: {cpu: 50m, memory: 16Mi}}`:                                                              "cpu=150m memory=16Mi",
		`{containers: [{name: a, resources: {requests: {cpu: 100m, example.com/gpu: 1}}}], resources: {requests: {cpu: "2"}}}`:                                           "cpu=2 example.com/gpu=1",
	} {
		t.Run(spec, func(t *testing.T) {
			s := parse[corev1.PodSpec](t, spec)
			if got := describe(PodRequests(&s)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if again := describe(PodRequests(&s)); again != want {
				t.Errorf("the second time, got %s", again)
			}
		})
	}
}

func TestSummarize(t *testing.T) {
	node := func(name, spec string, ready corev1.ConditionStatus) corev1.Node {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: parse[corev1.NodeSpec](t, spec)}
		n.Status = parse[corev1.NodeStatus](t, `{allocatable: {cpu: "4", memory: 8Gi, pods: 10}}`)
		if ready != "" {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		}
		return n
	}
	pod := func(node string, phase corev1.PodPhase) corev1.Pod {
		spec := parse[corev1.PodSpec](t, `{containers: [{name: a, resources: {requests: {cpu: 500m, memory: 1Gi}}}]}`)
		spec.NodeName = node
		return corev1.Pod{Spec: spec, Status: corev1.PodStatus{Phase: phase}}
	}
	nodes := []corev1.Node{node("a", "{}", "True"), node("b", "{}", "True"), node("cordoned", "{unschedulable: true}", "True"), node("lost", "{}", "Unknown"), node("new", "{}", "")}
	pods := []corev1.Pod{
		pod("a", corev1.PodRunning), pod("a", corev1.PodPending), pod("a", corev1.PodSucceeded), pod("b", corev1.PodFailed), pod("", corev1.PodPending),
		pod("cordoned", corev1.PodRunning), pod("lost", corev1.PodRunning),
	}
	count, sum := Summarize(nodes, pods)
	if count.TotalNum != 5 || count.ReadyNum != 3 {
		t.Errorf("nodes %+v", count)
	}
	for what, c := range map[string]struct {
		got  corev1.ResourceList
		want string
	}{
		"allocatable": {sum.Allocatable, "cpu=8 memory=16Gi pods=20"},
		"allocated":   {sum.Allocated, "cpu=1 memory=2Gi pods=2"},
		"allocating":  {sum.Allocating, "cpu=500m memory=1Gi pods=1"},
	} {
		if got := describe(c.got); got != c.want {
			t.Errorf("%s: %s, not %s", what, got, c.want)
		}
	}
	for requests, want := range map[string]int64{
		`{}`:                            17,
		`{cpu: 500m}`:                   13,
		`{cpu: 500m, memory: 4Gi}`:      3,
		`{cpu: "100"}`:                  0,
		`{cpu: 0}`:                      17,
		`{example.com/gpu: 1}`:          0,
		`{cpu: 1m, memory: 1, pods: 5}`: 17,
	} {
		if got := Replicas(sum, parse[corev1.ResourceList](t, requests)); got != want {
			t.Errorf("room for %d with %s, not %d", got, requests, want)
		}
	}
	if got := Replicas(nil, nil); got != 0 {
		t.Errorf("without a report: %d", got)
	}
	full, all := Summarize(nodes[:1], slices.Repeat(pods[:1], 20))
	if full.ReadyNum != 1 || Replicas(all, nil) != 0 {
		t.Errorf("overcommitted: %d", Replicas(all, nil))
	}
}
