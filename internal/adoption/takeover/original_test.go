package takeover

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

func TestOriginal(t *testing.T) {
	for name, c := range map[string]struct{ live, want string }{
		"what the server keeps": {
			live: "ConfigMap v1\nmetadata: {uid: u, resourceVersion: '1', generation: 3, creationTimestamp: '2026-01-01T00:00:00Z', managedFields: [{manager: m}], finalizers: [f], ownerReferences: [{name: n}]}\ndata: {a: b}",
			want: "ConfigMap v1\ndata: {a: b}",
		},
		"the status":                   {"Deployment apps/v1\nspec: {replicas: 1}\nstatus: {replicas: 1}", "Deployment apps/v1\nspec: {replicas: 1}"},
		"labels and annotations stay":  {"ConfigMap v1\nmetadata: {labels: {app: a}, annotations: {b: c}}", "ConfigMap v1\nmetadata: {labels: {app: a}, annotations: {b: c}}"},
		"but not what tools have left": {"Deployment apps/v1\nmetadata: {annotations: {deployment.kubernetes.io/revision: '3', kubectl.kubernetes.io/last-applied-configuration: '{}'}}", "Deployment apps/v1"},
		"nor what is said to a hub": {
			"ConfigMap v1\nmetadata: {labels: {karmada.io/managed: 'true', fairlead.dev/hub: h, policy.karmada.io/x: y}, annotations: {work.karmada.io/conflict-resolution: abort}}", "ConfigMap v1",
		},
		"pods are restarted by nothing": {
			"Deployment apps/v1\nspec: {template: {metadata: {annotations: {kubectl.kubernetes.io/restartedAt: now}}}}",
			"Deployment apps/v1\nspec: {template: {metadata: {annotations: {kubectl.kubernetes.io/restartedAt: now}}}}",
		},
		"addresses of a Service": {
			"Service v1\nspec: {type: NodePort, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, healthCheckNodePort: 30001, ports: [{port: 80, nodePort: 30000}]}",
			"Service v1\nspec: {type: NodePort, ports: [{port: 80}]}",
		},
		"a headless Service": {
			"Service v1\nspec: {clusterIP: None, clusterIPs: [None], ipFamilies: [IPv4], ports: [{port: 80}]}",
			"Service v1\nspec: {clusterIP: None, ports: [{port: 80}]}",
		},
		"the selector of a Job": {
			"Job batch/v1\nspec: {selector: {matchLabels: {controller-uid: u}}, template: {metadata: {labels: {app: a, controller-uid: u, job-name: it, batch.kubernetes.io/controller-uid: u, batch.kubernetes.io/job-name: it}}}}",
			"Job batch/v1\nspec: {template: {metadata: {labels: {app: a}}}}",
		},
		"the selector of a Job that a user has set": {
			"Job batch/v1\nspec: {manualSelector: true, selector: {matchLabels: {app: a}}}", "Job batch/v1\nspec: {manualSelector: true, selector: {matchLabels: {app: a}}}",
		},
		"the volume of a claim": {
			"PersistentVolumeClaim v1\nmetadata: {annotations: {pv.kubernetes.io/bind-completed: 'yes'}}\nspec: {storageClassName: fast, volumeName: pvc-1}",
			"PersistentVolumeClaim v1\nspec: {storageClassName: fast}",
		},
		"the claim of a volume": {
			"PersistentVolume v1\nspec: {storageClassName: fast, claimRef: {namespace: shop, name: data, uid: u}}", "PersistentVolume v1\nspec: {storageClassName: fast}",
		},
		"the tokens of a ServiceAccount": {
			"ServiceAccount v1\nsecrets: [{name: token}]\nimagePullSecrets: [{name: pull}]", "ServiceAccount v1\nimagePullSecrets: [{name: pull}]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			live := adoptiontest.Object(t, c.live)
			clean := cleanObject(live)
			if diff := cmp.Diff(adoptiontest.Object(t, c.want).Object, clean.Object); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(clean.Object, cleanObject(clean).Object); diff != "" {
				t.Errorf("cleaned once more: %s", diff)
			}
			if diff := cmp.Diff(adoptiontest.Object(t, c.live).Object, live.Object); diff != "" {
				t.Errorf("the live object is changed: %s", diff)
			}
		})
	}
}

func TestUnadoptable(t *testing.T) {
	mark := "metadata: {labels: {karmada.io/managed: 'true', fairlead.dev/work: '" + model.ObjectID(adoptiontest.Object(t, "Deployment apps/v1")) + "', fairlead.dev/hub: "
	for name, c := range map[string]struct{ live, want string }{
		"anything else":           {"Deployment apps/v1", ""},
		"a label that was copied": {"Deployment apps/v1\nmetadata: {labels: {karmada.io/managed: 'true'}}", ""},
		"going":                   {"Deployment apps/v1\nmetadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}", "the object is being deleted"},
		"ours":                    {"Deployment apps/v1\n" + mark + "h}}", "managed by this hub already"},
		"another hub's":           {"Deployment apps/v1\n" + mark + "x}}", "managed by another hub"},
		"Karmada's":               {"Deployment apps/v1\nmetadata: {labels: {work.karmada.io/permanent-id: x}}", "managed by another control plane: label work.karmada.io/permanent-id"},
		"controlled":              {"ReplicaSet apps/v1\nmetadata: {ownerReferences: [{kind: Deployment, name: cart, controller: true}]}", "controlled by Deployment cart"},
		"owned and not controlled": {
			"ConfigMap v1\nmetadata: {ownerReferences: [{kind: Deployment, name: cart}]}", "",
		},
		"a token":                            {"Secret v1\ntype: kubernetes.io/service-account-token", "token of a ServiceAccount"},
		"a bootstrap token":                  {"Secret v1\ntype: bootstrap.kubernetes.io/token", "bootstrap token of the cluster"},
		"a custom resource that is named so": {"Secret vault.example.com/v1\ntype: helm.sh/release.v1", ""},
		"managed, and being deleted":         {"Deployment apps/v1\n" + strings.Replace(mark, "{labels", "{deletionTimestamp: '2026-01-01T00:00:00Z', labels", 1) + "x}}", "the object is being deleted"},
		"a release":                          {"Secret v1\ntype: helm.sh/release.v1", "release record of Helm"},
		"a Secret of ours":                   {"Secret v1\ntype: Opaque", ""},
		"a webhook, which the hub would call": {
			"MutatingWebhookConfiguration admissionregistration.k8s.io/v1", "the copy would be in force on the hub",
		},
		"an API, which the hub would serve": {"APIService apiregistration.k8s.io/v1", "the copy would be in force on the hub"},
		"a node":                            {"Node v1", "local to each cluster"},
		"a role":                            {"ClusterRole rbac.authorization.k8s.io/v1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := skipReason(adoptiontest.Object(t, c.live), "h"); got != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
	for kind, name := range map[string]string{"ConfigMap v1": "kube-root-ca.crt", "ServiceAccount v1": "default"} {
		o := adoptiontest.Object(t, kind)
		o.SetName(name)
		if got := skipReason(o, "h"); got != "local to each cluster" {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
