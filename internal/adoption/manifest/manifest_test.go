package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
)

func TestManifest(t *testing.T) {
	owned := func(u *unstructured.Unstructured, fields string) *unstructured.Unstructured {
		u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: "Update", FieldsV1: metav1.NewFieldsV1(fields)}})
		return u
	}
	byManagers := func(u *unstructured.Unstructured, entries ...metav1.ManagedFieldsEntry) *unstructured.Unstructured {
		u.SetManagedFields(entries)
		return u
	}
	for name, c := range map[string]struct {
		template *unstructured.Unstructured
		want     string
	}{
		"what the server sets": {
			adoptiontest.Object(t, "ConfigMap v1\nmetadata: {uid: u, resourceVersion: '1', generation: 2, creationTimestamp: x, selfLink: z, finalizers: [f], ownerReferences: [{name: o}], labels: {app: a}}\ndata: {a: b}\nstatus: {c: d}"),
			"ConfigMap v1\nmetadata: {labels: {app: a}}\ndata: {a: b}",
		},
		"what is said to Fairlead": {
			adoptiontest.Object(t, "ConfigMap v1\nmetadata: {labels: {karmada.io/managed: 'true', app: a}, annotations: {fairlead.dev/x: z, kubectl.kubernetes.io/last-applied-configuration: '{}', work.karmada.io/conflict-resolution: abort, resourcetemplate.karmada.io/retain-replicas: 'true', mine: b}}"),
			"ConfigMap v1\nmetadata: {labels: {app: a}, annotations: {resourcetemplate.karmada.io/retain-replicas: 'true', mine: b}}",
		},
		"addresses that the hub has assigned": {
			owned(adoptiontest.Object(t, "Service v1\nspec: {type: NodePort, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 80, protocol: TCP, nodePort: 30080}, {port: 81, nodePort: 30081}]}"),
				`{"f:spec":{"f:type":{},"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{"f:port":{}},"k:{\"port\":81,\"protocol\":\"TCP\"}":{"f:port":{},"f:nodePort":{}}}}}`),
			"Service v1\nspec: {type: NodePort, ports: [{port: 80, protocol: TCP}, {port: 81, nodePort: 30081}]}",
		},
		"addresses that the user has set": {
			owned(adoptiontest.Object(t, "Service v1\nspec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1]}"), `{"f:spec":{"f:clusterIP":{},"f:clusterIPs":{}}}`),
			"Service v1\nspec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1]}",
		},
		"no address": {
			owned(adoptiontest.Object(t, "Service v1\nspec: {clusterIP: None, clusterIPs: [None]}"), `{"f:spec":{"f:type":{}}}`),
			"Service v1\nspec: {clusterIP: None, clusterIPs: [None]}",
		},
		"the selector of a Job": {
			adoptiontest.Object(t, "Job batch/v1\nspec: {selector: {matchLabels: {controller-uid: u}}, template: {metadata: {labels: {app: a, controller-uid: u, batch.kubernetes.io/job-name: it}}}}"),
			"Job batch/v1\nspec: {template: {metadata: {labels: {app: a}}}}",
		},
		"the selector of a Job that its user chose": {
			adoptiontest.Object(t, "Job batch/v1\nspec: {manualSelector: true, selector: {matchLabels: {a: b}}}"),
			"Job batch/v1\nspec: {manualSelector: true, selector: {matchLabels: {a: b}}}",
		},
		"a token, which is the hub's own": {
			adoptiontest.Object(t, "Secret v1\nmetadata: {annotations: {kubernetes.io/service-account.name: a, kubernetes.io/service-account.uid: u}}\ntype: kubernetes.io/service-account-token\ndata: {token: aHVi}"),
			"Secret v1\nmetadata: {annotations: {kubernetes.io/service-account.name: a}}\ntype: kubernetes.io/service-account-token",
		},
		"what controllers of the hub remember": {
			adoptiontest.Object(t, "Deployment apps/v1\nmetadata: {annotations: {deployment.kubernetes.io/revision: '3'}}"), "Deployment apps/v1",
		},
		"the volume of a claim": {
			owned(adoptiontest.Object(t, "PersistentVolumeClaim v1\nspec: {volumeName: v}"), `{"f:spec":{"f:resources":{}}}`), "PersistentVolumeClaim v1\nspec: {}",
		},
		"the volume of a claim that its user chose": {
			owned(adoptiontest.Object(t, "PersistentVolumeClaim v1\nspec: {volumeName: v}"), `{"f:spec":{"f:volumeName":{}}}`), "PersistentVolumeClaim v1\nspec: {volumeName: v}",
		},
		"the volume of a claim that a controller bound": {
			byManagers(adoptiontest.Object(t, "PersistentVolumeClaim v1\nspec: {volumeName: v}"),
				metav1.ManagedFieldsEntry{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:resources":{}}}`)},
				metav1.ManagedFieldsEntry{Manager: "kube-controller-manager", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:volumeName":{}}}`)},
				metav1.ManagedFieldsEntry{Manager: "status-writer", Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:volumeName":{}}}`)}),
			"PersistentVolumeClaim v1\nspec: {}",
		},
		"without managedFields": {
			adoptiontest.Object(t, "PersistentVolumeClaim v1\nspec: {volumeName: v}"), "PersistentVolumeClaim v1\nspec: {volumeName: v}",
		},
		"the tokens of a ServiceAccount": {
			owned(adoptiontest.Object(t, "ServiceAccount v1\nsecrets: [{name: token}]\nimagePullSecrets: [{name: registry}]"), `{"f:imagePullSecrets":{}}`),
			"ServiceAccount v1\nimagePullSecrets: [{name: registry}]",
		},
		"the tokens of a ServiceAccount, beside a secret of its user": {
			owned(adoptiontest.Object(t, "ServiceAccount v1\nsecrets: [{name: token}, {name: mine}]"), `{"f:secrets":{".":{},"k:{\"name\":\"mine\"}":{".":{},"f:name":{}}}}`),
			"ServiceAccount v1\nsecrets: [{name: mine}]",
		},
		"the token of a Pod, which is the hub's own": {
			adoptiontest.Object(t, "Pod v1\nspec: {containers: [{name: a, volumeMounts: [{name: kube-api-access-x, mountPath: /token}]}, {name: b, volumeMounts: [{name: data, mountPath: /data}, {name: kube-api-access-x, mountPath: /token}]}], volumes: [{name: data}, {name: kube-api-access-x, projected: {sources: [{serviceAccountToken: {path: token}}]}}]}"),
			"Pod v1\nspec: {containers: [{name: a}, {name: b, volumeMounts: [{name: data, mountPath: /data}]}], volumes: [{name: data}]}",
		},
		"a volume that its user gave such a name": {
			adoptiontest.Object(t, "Pod v1\nspec: {containers: [{name: a, volumeMounts: [{name: kube-api-access-x, mountPath: /token}]}], volumes: [{name: kube-api-access-x, emptyDir: {}}]}"),
			"Pod v1\nspec: {containers: [{name: a, volumeMounts: [{name: kube-api-access-x, mountPath: /token}]}], volumes: [{name: kube-api-access-x, emptyDir: {}}]}",
		},
		"a CA bundle that a controller of the hub has injected": {
			adoptiontest.Object(t, "ValidatingWebhookConfiguration admissionregistration.k8s.io/v1\nmetadata: {annotations: {cert-manager.io/inject-ca-from: shop/ca}}\nwebhooks: [{name: a, clientConfig: {url: u, caBundle: A}}]"),
			"ValidatingWebhookConfiguration admissionregistration.k8s.io/v1\nmetadata: {annotations: {cert-manager.io/inject-ca-from: shop/ca}}\nwebhooks: [{name: a, clientConfig: {url: u}}]",
		},
		"a CA bundle of its user": {
			adoptiontest.Object(t, "ValidatingWebhookConfiguration admissionregistration.k8s.io/v1\nwebhooks: [{name: a, clientConfig: {url: u, caBundle: A}}]"),
			"ValidatingWebhookConfiguration admissionregistration.k8s.io/v1\nwebhooks: [{name: a, clientConfig: {url: u, caBundle: A}}]",
		},
		"the node of a Pod": {
			owned(adoptiontest.Object(t, "Pod v1\nspec: {nodeName: n, priority: 1}"), `{"f:spec":{"f:priority":{}}}`), "Pod v1\nspec: {priority: 1}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := FromTemplate(c.template, policyv1alpha1.ConflictOverwrite)
			if err != nil {
				t.Fatal(err)
			}
			want := adoptiontest.Object(t, c.want)
			annotations := model.MergeKeys(want.GetAnnotations(), nil, map[string]string{policy.AnnotationConflictResolution: "overwrite"})
			want.SetAnnotations(annotations)
			if diff := cmp.Diff(want.Object, got.Object); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestReplicas(t *testing.T) {
	for text, want := range map[string]int32{
		"Deployment apps/v1\nspec: {replicas: 3}": 3, "Deployment apps/v1\nspec: {replicas: 0}": 0, "Deployment apps/v1\nspec: {}": -1,
		"ConfigMap v1\ndata: {replicas: '3'}": -1, "Widget example.com/v1\nspec: {replicas: many}": -1,
	} {
		if got := Replicas(adoptiontest.Object(t, text)); got != want {
			t.Errorf("%s: got %d", text, got)
		}
	}
}
