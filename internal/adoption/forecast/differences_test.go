package forecast

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
)

func TestDifferences(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		want          []Difference
	}{
		"nothing but what the server keeps, and marks": {
			before: "Deployment apps/v1\nmetadata: {resourceVersion: '1', generation: 1, labels: {app: a}}\nspec: {replicas: 1}\nstatus: {replicas: 1}",
			after:  "Deployment apps/v1\nmetadata: {resourceVersion: '2', generation: 2, labels: {app: a, karmada.io/managed: 'true', fairlead.dev/hub: h, fairlead.dev/work: w}}\nspec: {replicas: 1}",
		},
		"the first marks": {
			before: "ConfigMap v1", after: "ConfigMap v1\nmetadata: {labels: {karmada.io/managed: 'true', fairlead.dev/hub: h, fairlead.dev/work: w}}",
		},
		"a value": {
			before: "Deployment apps/v1\nspec: {replicas: 1}", after: "Deployment apps/v1\nspec: {replicas: 3}",
			want: []Difference{{"spec.replicas", "1", "3"}},
		},
		"the first label, and one with dots": {
			before: "ConfigMap v1", after: "ConfigMap v1\nmetadata: {labels: {app: a, example.com/team: x}}",
			want: []Difference{{"metadata.labels.app", "", "a"}, {"metadata.labels[example.com/team]", "", "x"}},
		},
		"an environment variable that goes": {
			before: "Deployment apps/v1\nspec: {template: {spec: {containers: [{name: a, image: x, env: [{name: EXTRA, value: '1'}]}]}}}",
			after:  "Deployment apps/v1\nspec: {template: {spec: {containers: [{name: a, image: x}]}}}",
			want:   []Difference{{"spec.template.spec.containers[a].env[EXTRA]", "1", ""}},
		},
		"a container that comes": {
			before: "Deployment apps/v1\nspec: {containers: [{name: a}]}", after: "Deployment apps/v1\nspec: {containers: [{name: a}, {name: b, image: z, tty: true}]}",
			want: []Difference{{"spec.containers[b]", "", `{"image":"z","tty":true}`}},
		},
		"the order": {
			before: "Deployment apps/v1\nspec: {env: [{name: A}, {name: B}]}", after: "Deployment apps/v1\nspec: {env: [{name: B}, {name: A}]}",
			want: []Difference{{"spec.env (order)", "A, B", "B, A"}},
		},
		"items without a name": {
			before: "Deployment apps/v1\nspec: {args: [a, b]}", after: "Deployment apps/v1\nspec: {args: [a, c, d]}",
			want: []Difference{{"spec.args[1]", "b", "c"}, {"spec.args[2]", "", "d"}},
		},
		"another kind of value": {
			before: "Service v1\nspec: {port: http}", after: "Service v1\nspec: {port: 80}",
			want: []Difference{{"spec.port", "http", "80"}},
		},
		"what a Secret holds is not told": {
			before: "Secret v1\ndata: {a: YQ==, b: Yg==}\ntype: Opaque", after: "Secret v1\ndata: {a: YWE=}\ntype: Other",
			want: []Difference{{"data.a", "(hidden)", "(hidden)"}, {"data.b", "(hidden)", ""}, {"type", "Opaque", "Other"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, differences(adoptiontest.Object(t, c.before), adoptiontest.Object(t, c.after))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEffect(t *testing.T) {
	const was = "Deployment apps/v1\nmetadata: {generation: 1}\nspec: {replicas: 2, template: {spec: {containers: [{name: a, image: x}]}}}"
	for name, c := range map[string]struct {
		before, after string
		restarts      bool
		pods          int64
		generation    *Move
		note          string
	}{
		"labels only": {
			pods: 2, before: was, after: "Deployment apps/v1\nmetadata: {generation: 1, labels: {app: a}}\nspec: {replicas: 2, template: {spec: {containers: [{name: a, image: x}]}}}",
		},
		"another image": {
			before: was, after: "Deployment apps/v1\nmetadata: {generation: 2}\nspec: {replicas: 2, template: {spec: {containers: [{name: a, image: z}]}}}",
			restarts: true, pods: 2, generation: &Move{1, 2},
		},
		"another image, paused": {
			before: was, after: "Deployment apps/v1\nmetadata: {generation: 2}\nspec: {paused: true, replicas: 2, template: {spec: {containers: [{name: a, image: z}]}}}",
			pods: 2, generation: &Move{1, 2}, note: "pods are replaced only when spec.paused of the workload is unset",
		},
		"annotations": {
			before: was, after: "Deployment apps/v1\nmetadata: {generation: 2, annotations: {a: b}}\nspec: {replicas: 2, template: {spec: {containers: [{name: a, image: x}]}}}",
			pods: 2, generation: &Move{1, 2}, note: "annotations change the generation, and no pod restarts",
		},
		"replicas": {
			before: was, after: "Deployment apps/v1\nmetadata: {generation: 2}\nspec: {replicas: 3, template: {spec: {containers: [{name: a, image: x}]}}}",
			pods: 2, generation: &Move{1, 2}, note: "the generation changes, and no pod restarts",
		},
		"a DaemonSet": {
			before:   "DaemonSet apps/v1\nspec: {template: {spec: {image: x}}}\nstatus: {desiredNumberScheduled: 5}",
			after:    "DaemonSet apps/v1\nspec: {template: {spec: {image: z}}}",
			restarts: true, pods: 5,
		},
		"a StatefulSet that waits for its pods to be deleted": {
			before: "StatefulSet apps/v1\nspec: {template: {spec: {image: x}}, updateStrategy: {type: OnDelete}}",
			after:  "StatefulSet apps/v1\nspec: {template: {spec: {image: z}}, updateStrategy: {type: OnDelete}}",
			pods:   1,
			note:   "pods are replaced only when they are deleted, because updateStrategy is OnDelete",
		},
		"what has no pods": {before: "ConfigMap v1\ndata: {a: b}", after: "ConfigMap v1\ndata: {a: c}"},
		"what runs its pods later": {
			before: "CronJob batch/v1\nspec: {jobTemplate: {spec: {template: {image: x}}}}",
			after:  "CronJob batch/v1\nspec: {jobTemplate: {spec: {template: {image: z}}}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := effectOf(adoptiontest.Object(t, c.before), adoptiontest.Object(t, c.after))
			want := Effect{Differences: got.Differences, Restarts: c.restarts, Pods: c.pods, Generation: c.generation, Note: c.note}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
