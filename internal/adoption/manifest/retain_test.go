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
		"the class of a load balancer": {
			manifest: "Service v1\nspec: {type: LoadBalancer, ports: [{port: 80}]}",
			live:     "Service v1\nspec: {type: LoadBalancer, loadBalancerClass: example.com/nlb, ports: [{port: 80}]}",
			want:     "Service v1\nspec: {type: LoadBalancer, loadBalancerClass: example.com/nlb, ports: [{port: 80}]}",
		},
		"the class of a load balancer that the template sets": {
			manifest: "Service v1\nspec: {type: LoadBalancer, loadBalancerClass: example.com/mine}",
			live:     "Service v1\nspec: {type: LoadBalancer, loadBalancerClass: example.com/nlb}",
			want:     "Service v1\nspec: {type: LoadBalancer, loadBalancerClass: example.com/mine}",
		},
		"the pull secrets of an account": {
			manifest: "ServiceAccount v1", live: "ServiceAccount v1\nimagePullSecrets: [{name: registry}]", want: "ServiceAccount v1\nimagePullSecrets: [{name: registry}]",
		},
		"secrets of an account that the cluster adds": {
			manifest: "ServiceAccount v1\nsecrets: [{name: mine}]\nimagePullSecrets: [{name: pull}, {name: other}]",
			live:     "ServiceAccount v1\nsecrets: [{name: token}, {name: mine}]\nimagePullSecrets: [{name: dockercfg}, {name: pull}, {}]",
			want:     "ServiceAccount v1\nsecrets: [{name: mine}, {name: token}]\nimagePullSecrets: [{name: pull}, {name: other}, {name: dockercfg}]",
		},
		"volumes and mounts that admission adds to a pod": {
			manifest: "Pod v1\nspec: {containers: [{name: a, volumeMounts: [{name: data, mountPath: /data}]}, {name: b}], initContainers: [{name: i}], volumes: [{name: data}]}",
			live: "Pod v1\nspec: {containers: [{name: b, volumeMounts: [{name: kube-api-access-x, mountPath: /token}]}, " +
				"{name: a, volumeMounts: [{name: kube-api-access-x, mountPath: /token}, {name: data, mountPath: /data, readOnly: true}]}], " +
				"initContainers: [{name: i, volumeMounts: [{name: kube-api-access-x, mountPath: /token}]}], volumes: [{name: kube-api-access-x}, {name: data}]}",
			want: "Pod v1\nspec: {containers: [{name: a, volumeMounts: [{name: data, mountPath: /data}, {name: kube-api-access-x, mountPath: /token}]}, " +
				"{name: b, volumeMounts: [{name: kube-api-access-x, mountPath: /token}]}], " +
				"initContainers: [{name: i, volumeMounts: [{name: kube-api-access-x, mountPath: /token}]}], volumes: [{name: data}, {name: kube-api-access-x}]}",
		},
		"what admission sets in a pod": {
			manifest: "Pod v1\nspec: {containers: [{name: a}]}",
			live:     "Pod v1\nspec: {containers: [{name: a}], serviceAccountName: default, serviceAccount: default, imagePullSecrets: [{name: pull}], tolerations: [{key: a}], priority: 0, preemptionPolicy: Never}",
			want:     "Pod v1\nspec: {containers: [{name: a}], serviceAccountName: default, serviceAccount: default, imagePullSecrets: [{name: pull}], tolerations: [{key: a}], priority: 0, preemptionPolicy: Never}",
		},
		"no volumes of the pods of a workload": {
			manifest: "Deployment apps/v1\nspec: {template: {spec: {volumes: [{name: data}]}}}",
			live:     "Deployment apps/v1\nspec: {template: {spec: {volumes: [{name: data}, {name: extra}]}}}",
			want:     "Deployment apps/v1\nspec: {template: {spec: {volumes: [{name: data}]}}}",
		},
		"CA bundles of webhooks that validate, by name": {
			manifest: "ValidatingWebhookConfiguration admissionregistration.k8s.io/v1\nwebhooks: [{name: b, clientConfig: {url: u}}, {name: a, clientConfig: {caBundle: ''}}, {name: c, clientConfig: {caBundle: mine}}, {name: d, clientConfig: {caBundle: Cg==}}]",
			live:     "ValidatingWebhookConfiguration admissionregistration.k8s.io/v1\nwebhooks: [{name: a, clientConfig: {caBundle: A}}, {name: b, clientConfig: {caBundle: B}}, {name: c, clientConfig: {caBundle: C}}, {name: d, clientConfig: {caBundle: D}}, {name: e}]",
			want:     "ValidatingWebhookConfiguration admissionregistration.k8s.io/v1\nwebhooks: [{name: b, clientConfig: {url: u, caBundle: B}}, {name: a, clientConfig: {caBundle: A}}, {name: c, clientConfig: {caBundle: mine}}, {name: d, clientConfig: {caBundle: D}}]",
		},
		"CA bundles of webhooks that mutate": {
			manifest: "MutatingWebhookConfiguration admissionregistration.k8s.io/v1\nwebhooks: [{name: a, clientConfig: {service: {name: s}}}]",
			live:     "MutatingWebhookConfiguration admissionregistration.k8s.io/v1\nwebhooks: [{name: a, clientConfig: {service: {name: t}, caBundle: A}}]",
			want:     "MutatingWebhookConfiguration admissionregistration.k8s.io/v1\nwebhooks: [{name: a, clientConfig: {service: {name: s}, caBundle: A}}]",
		},
		"the CA bundle of a conversion": {
			manifest: "CustomResourceDefinition apiextensions.k8s.io/v1\nspec: {conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: s}}}}}",
			live:     "CustomResourceDefinition apiextensions.k8s.io/v1\nspec: {conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: s}, caBundle: A}}}}",
			want:     "CustomResourceDefinition apiextensions.k8s.io/v1\nspec: {conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: s}, caBundle: A}}}}",
		},
		"no CA bundle of a conversion that there is no more": {
			manifest: "CustomResourceDefinition apiextensions.k8s.io/v1\nspec: {conversion: {strategy: None}}",
			live:     "CustomResourceDefinition apiextensions.k8s.io/v1\nspec: {conversion: {strategy: Webhook, webhook: {clientConfig: {caBundle: A}}}}",
			want:     "CustomResourceDefinition apiextensions.k8s.io/v1\nspec: {conversion: {strategy: None}}",
		},
		"the CA bundle of an API": {
			manifest: "APIService apiregistration.k8s.io/v1\nspec: {service: {name: s}}",
			live:     "APIService apiregistration.k8s.io/v1\nspec: {service: {name: s}, caBundle: A, insecureSkipTLSVerify: false}",
			want:     "APIService apiregistration.k8s.io/v1\nspec: {service: {name: s}, caBundle: A}",
		},
		"no CA bundle of a kind of the same name": {
			manifest: "APIService example.com/v1\nspec: {}", live: "APIService example.com/v1\nspec: {caBundle: A}", want: "APIService example.com/v1\nspec: {}",
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
