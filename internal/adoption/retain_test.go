package adoption

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// object reads YAML; of "Kind group/version" in the first line, the name is "it" and the namespace "shop".
func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	head, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	kind, version, _ := strings.Cut(head, " ")
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if raw, err := yaml.YAMLToJSON([]byte(rest)); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	} else if err := json.Unmarshal(raw, &u.Object); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	if u.Object == nil {
		u.Object = map[string]any{}
	}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	u.SetName("it")
	u.SetNamespace("shop")
	return u
}

func TestRetain(t *testing.T) {
	marks := identity{"h", "w"}.marks()
	for name, c := range map[string]struct {
		manifest, live, want string
		scaled               bool
	}{
		"what the user does not set goes": {
			manifest: "Deployment apps/v1\nspec: {template: {spec: {containers: [{name: a}]}}}",
			live:     "Deployment apps/v1\nspec: {template: {spec: {containers: [{name: a, env: [{name: EXTRA}]}]}}, minReadySeconds: 5}",
			want:     "Deployment apps/v1\nspec: {template: {spec: {containers: [{name: a}]}}}",
		},
		"labels and annotations of others stay": {
			manifest: "ConfigMap v1\nmetadata: {labels: {app: new}, annotations: {a: b}}",
			live:     "ConfigMap v1\nmetadata: {labels: {app: old, team: x}, annotations: {a: c, deployment.kubernetes.io/revision: '3'}}",
			want:     "ConfigMap v1\nmetadata: {labels: {app: new, team: x}, annotations: {a: b, deployment.kubernetes.io/revision: '3'}}",
		},
		"finalizers and owners stay": {
			manifest: "ConfigMap v1\nmetadata: {finalizers: [hub], ownerReferences: [{name: hub}]}",
			live:     "ConfigMap v1\nmetadata: {finalizers: [member], ownerReferences: [{apiVersion: v1, kind: Pod, name: member, uid: u}], uid: x, resourceVersion: '7'}",
			want:     "ConfigMap v1\nmetadata: {finalizers: [member], ownerReferences: [{apiVersion: v1, kind: Pod, name: member, uid: u}], uid: x, resourceVersion: '7'}",
		},
		"the status stays": {
			manifest: "Deployment apps/v1\nspec: {}", live: "Deployment apps/v1\nspec: {}\nstatus: {replicas: 1}",
			want: "Deployment apps/v1\nspec: {}\nstatus: {replicas: 1}",
		},
		"addresses of a Service": {
			manifest: "Service v1\nspec: {ports: [{port: 80}]}",
			live:     "Service v1\nspec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, ports: [{port: 80}], sessionAffinity: ClientIP}",
			want:     "Service v1\nspec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, ports: [{port: 80}]}",
		},
		"node ports of a Service, port by port": {
			manifest: "Service v1\nspec: {type: NodePort, ports: [{port: 443, protocol: TCP}, {port: 80}, {port: 53, protocol: UDP}, {port: 1, nodePort: 30001}]}",
			live:     "Service v1\nspec: {type: NodePort, healthCheckNodePort: 32000, ports: [{port: 80, protocol: TCP, nodePort: 30080}, {port: 443, protocol: TCP, nodePort: 30443}, {port: 53, protocol: TCP, nodePort: 30053}, {port: 1, nodePort: 30009}]}",
			want:     "Service v1\nspec: {type: NodePort, healthCheckNodePort: 32000, ports: [{port: 443, protocol: TCP, nodePort: 30443}, {port: 80, nodePort: 30080}, {port: 53, protocol: UDP}, {port: 1, nodePort: 30001}]}",
		},
		"no node ports for what has none any more": {
			manifest: "Service v1\nspec: {type: ClusterIP, ports: [{port: 80}]}",
			live:     "Service v1\nspec: {type: NodePort, ports: [{port: 80, nodePort: 30080}]}",
			want:     "Service v1\nspec: {type: ClusterIP, ports: [{port: 80}]}",
		},
		"the volume of a claim": {
			manifest: "PersistentVolumeClaim v1\nspec: {resources: {}}",
			live:     "PersistentVolumeClaim v1\nspec: {resources: {}, volumeName: pv1, storageClassName: fast, volumeMode: Filesystem}",
			want:     "PersistentVolumeClaim v1\nspec: {resources: {}, volumeName: pv1, storageClassName: fast, volumeMode: Filesystem}",
		},
		"the claim of a volume": {
			manifest: "PersistentVolume v1\nspec: {}", live: "PersistentVolume v1\nspec: {claimRef: {name: c}}", want: "PersistentVolume v1\nspec: {claimRef: {name: c}}",
		},
		"the node of a pod": {
			manifest: "Pod v1\nspec: {}", live: "Pod v1\nspec: {nodeName: n1}", want: "Pod v1\nspec: {nodeName: n1}",
		},
		"the selector of a Job": {
			manifest: "Job batch/v1\nspec: {template: {metadata: {labels: {app: a}}}}",
			live:     "Job batch/v1\nspec: {selector: {matchLabels: {controller-uid: u}}, template: {metadata: {labels: {app: a, controller-uid: u, job-name: it, other: x}}}}",
			want:     "Job batch/v1\nspec: {selector: {matchLabels: {controller-uid: u}}, template: {metadata: {labels: {app: a, controller-uid: u, job-name: it}}}}",
		},
		"the tokens of an account": {
			manifest: "ServiceAccount v1", live: "ServiceAccount v1\nsecrets: [{name: token}]", want: "ServiceAccount v1\nsecrets: [{name: token}]",
		},
		"a token": {
			manifest: "Secret v1\ntype: kubernetes.io/service-account-token\ndata: {token: aHVi}",
			live:     "Secret v1\ntype: kubernetes.io/service-account-token\ndata: {token: bWVtYmVy}",
			want:     "Secret v1\ntype: kubernetes.io/service-account-token\ndata: {token: bWVtYmVy}",
		},
		"replicas are the manifest's": {
			manifest: "Deployment apps/v1\nspec: {replicas: 2}", live: "Deployment apps/v1\nspec: {replicas: 5}", want: "Deployment apps/v1\nspec: {replicas: 2}",
		},
		"replicas of what somebody scales": {
			manifest: "Deployment apps/v1\nspec: {replicas: 2}", live: "Deployment apps/v1\nspec: {replicas: 5}", want: "Deployment apps/v1\nspec: {replicas: 5}", scaled: true,
		},
		"what is said to Fairlead does not go there": {
			manifest: "ConfigMap v1\nmetadata: {annotations: {work.karmada.io/conflict-resolution: overwrite, x.karmada.io/y: z, karmada.io/a: b, fairlead.dev/c: d, kubectl.kubernetes.io/last-applied-configuration: '{}', example.com/mine: e}}",
			live:     "ConfigMap v1",
			want:     "ConfigMap v1\nmetadata: {annotations: {example.com/mine: e}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := retain(object(t, c.manifest), object(t, c.live), marks, c.scaled)
			want := object(t, c.want)
			want.SetLabels(joined(want.GetLabels(), nil, marks))
			if diff := cmp.Diff(want.Object, got.Object); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// A label that the manifest had and has no more goes; one of the same object that others have set stays.
func TestRetainForgetsItsOwn(t *testing.T) {
	live := object(t, "ConfigMap v1\nmetadata: {labels: {gone: a, theirs: b}, annotations: {gone: a}}")
	live.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: FieldOwner, Operation: "Update", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{".":{},"f:gone":{}},"f:annotations":{"f:gone":{}}}}`)},
		{Manager: "people", Operation: "Update", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:theirs":{}}}}`)},
	})
	got := retain(object(t, "ConfigMap v1"), live, nil, false)
	if diff := cmp.Diff(map[string]string{"theirs": "b"}, got.GetLabels()); diff != "" || len(got.GetAnnotations()) != 0 {
		t.Errorf("labels %v, annotations %v", got.GetLabels(), got.GetAnnotations())
	}
}

func TestOwnership(t *testing.T) {
	for name, c := range map[string]struct {
		labels map[string]string
		want   ownership
	}{
		"no marks":                             {nil, nobodys},
		"a copied label":                       {map[string]string{LabelManaged: "true"}, nobodys},
		"ours":                                 {identity{"h", "w"}.marks(), ours},
		"copied from another object":           {identity{"h", "x"}.marks(), nobodys},
		"copied from an object of another hub": {identity{"g", "x"}.marks(), nobodys},
		"another hub's":                        {identity{"g", "w"}.marks(), anotherHubs},
	} {
		t.Run(name, func(t *testing.T) {
			live := object(t, "ConfigMap v1")
			live.SetLabels(c.labels)
			if got := (identity{"h", "w"}).of(live); got != c.want {
				t.Errorf("got %d", got)
			}
		})
	}
}

func TestManifest(t *testing.T) {
	owned := func(u *unstructured.Unstructured, fields string) *unstructured.Unstructured {
		u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: "Update", FieldsV1: metav1.NewFieldsV1(fields)}})
		return u
	}
	for name, c := range map[string]struct {
		template *unstructured.Unstructured
		want     string
	}{
		"what the server sets": {
			object(t, "ConfigMap v1\nmetadata: {uid: u, resourceVersion: '1', generation: 2, creationTimestamp: x, selfLink: z, finalizers: [f], ownerReferences: [{name: o}], labels: {app: a}}\ndata: {a: b}\nstatus: {c: d}"),
			"ConfigMap v1\nmetadata: {labels: {app: a}}\ndata: {a: b}",
		},
		"what is said to Fairlead": {
			object(t, "ConfigMap v1\nmetadata: {labels: {karmada.io/managed: 'true', app: a}, annotations: {fairlead.dev/x: z, kubectl.kubernetes.io/last-applied-configuration: '{}', work.karmada.io/conflict-resolution: abort, resourcetemplate.karmada.io/retain-replicas: 'true', mine: b}}"),
			"ConfigMap v1\nmetadata: {labels: {app: a}, annotations: {resourcetemplate.karmada.io/retain-replicas: 'true', mine: b}}",
		},
		"addresses that the hub has assigned": {
			owned(object(t, "Service v1\nspec: {type: NodePort, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 80, protocol: TCP, nodePort: 30080}, {port: 81, nodePort: 30081}]}"),
				`{"f:spec":{"f:type":{},"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{"f:port":{}},"k:{\"port\":81,\"protocol\":\"TCP\"}":{"f:port":{},"f:nodePort":{}}}}}`),
			"Service v1\nspec: {type: NodePort, ports: [{port: 80, protocol: TCP}, {port: 81, nodePort: 30081}]}",
		},
		"addresses that the user has set": {
			owned(object(t, "Service v1\nspec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1]}"), `{"f:spec":{"f:clusterIP":{},"f:clusterIPs":{}}}`),
			"Service v1\nspec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1]}",
		},
		"no address": {
			owned(object(t, "Service v1\nspec: {clusterIP: None, clusterIPs: [None]}"), `{"f:spec":{"f:type":{}}}`),
			"Service v1\nspec: {clusterIP: None, clusterIPs: [None]}",
		},
		"the selector of a Job": {
			object(t, "Job batch/v1\nspec: {selector: {matchLabels: {controller-uid: u}}, template: {metadata: {labels: {app: a, controller-uid: u, batch.kubernetes.io/job-name: it}}}}"),
			"Job batch/v1\nspec: {template: {metadata: {labels: {app: a}}}}",
		},
		"the selector of a Job that its user chose": {
			object(t, "Job batch/v1\nspec: {manualSelector: true, selector: {matchLabels: {a: b}}}"),
			"Job batch/v1\nspec: {manualSelector: true, selector: {matchLabels: {a: b}}}",
		},
		"a token, which is the hub's own": {
			object(t, "Secret v1\nmetadata: {annotations: {kubernetes.io/service-account.name: a, kubernetes.io/service-account.uid: u}}\ntype: kubernetes.io/service-account-token\ndata: {token: aHVi}"),
			"Secret v1\nmetadata: {annotations: {kubernetes.io/service-account.name: a}}\ntype: kubernetes.io/service-account-token",
		},
		"what controllers of the hub remember": {
			object(t, "Deployment apps/v1\nmetadata: {annotations: {deployment.kubernetes.io/revision: '3'}}"), "Deployment apps/v1",
		},
		"the volume of a claim": {
			owned(object(t, "PersistentVolumeClaim v1\nspec: {volumeName: v}"), `{"f:spec":{"f:resources":{}}}`), "PersistentVolumeClaim v1\nspec: {}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := manifestOf(c.template, policyv1alpha1.ConflictOverwrite)
			if err != nil {
				t.Fatal(err)
			}
			want := object(t, c.want)
			annotations := joined(want.GetAnnotations(), nil, map[string]string{AnnotationConflictResolution: "overwrite"})
			want.SetAnnotations(annotations)
			if diff := cmp.Diff(want.Object, got.Object); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
