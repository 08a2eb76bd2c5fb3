package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

func TestRetain(t *testing.T) {
	marks := model.Identity{Hub: "h", Object: "w"}.Labels()
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
		"replicas of an autoscaled object": {
			manifest: "Deployment apps/v1\nspec: {replicas: 2}", live: "Deployment apps/v1\nspec: {replicas: 5}", want: "Deployment apps/v1\nspec: {replicas: 5}", scaled: true,
		},
		"what is said to Fairlead does not go there": {
			manifest: "ConfigMap v1\nmetadata: {annotations: {work.karmada.io/conflict-resolution: overwrite, x.karmada.io/y: z, karmada.io/a: b, fairlead.dev/c: d, kubectl.kubernetes.io/last-applied-configuration: '{}', example.com/mine: e}}",
			live:     "ConfigMap v1",
			want:     "ConfigMap v1\nmetadata: {annotations: {example.com/mine: e}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Retain(adoptiontest.Object(t, c.manifest), adoptiontest.Object(t, c.live), marks, c.scaled)
			want := adoptiontest.Object(t, c.want)
			want.SetLabels(model.MergeKeys(want.GetLabels(), nil, marks))
			if diff := cmp.Diff(want.Object, got.Object); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// A label that the manifest had and has no more goes; one of the same object that others have set stays.
func TestRetainForgetsItsOwn(t *testing.T) {
	live := adoptiontest.Object(t, "ConfigMap v1\nmetadata: {labels: {gone: a, theirs: b}, annotations: {gone: a}}")
	live.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: model.FieldOwner, Operation: "Update", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{".":{},"f:gone":{}},"f:annotations":{"f:gone":{}}}}`)},
		{Manager: "people", Operation: "Update", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:theirs":{}}}}`)},
	})
	got := Retain(adoptiontest.Object(t, "ConfigMap v1"), live, nil, false)
	if diff := cmp.Diff(map[string]string{"theirs": "b"}, got.GetLabels()); diff != "" || len(got.GetAnnotations()) != 0 {
		t.Errorf("labels %v, annotations %v", got.GetLabels(), got.GetAnnotations())
	}
}
