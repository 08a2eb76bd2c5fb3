package release

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestDiffers(t *testing.T) {
	const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: a
  labels: {app.kubernetes.io/name: a}
spec:
  template:
    spec:
      hostNetwork: false
      nodeSelector: {}
      containers:
      - name: pilot
        image: pilot:1
        resources: {requests: {cpu: 0.5, memory: 1024Mi}}
        env: [{name: A, value: b}, {name: EMPTY, value: ""}]
        args: [discovery, --verbose]
        ports: [{containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: UDP}]
      volumes:
      - name: cache
        emptyDir: {}
`
	const live = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: a
  uid: "1"
  labels: {app.kubernetes.io/name: a, more: "yes"}
spec:
  replicas: 3
  template:
    spec:
      restartPolicy: Always
      containers:
      - name: added
        image: by-others
      - name: pilot
        image: pilot:1
        imagePullPolicy: IfNotPresent
        resources: {requests: {cpu: 500m, memory: 1Gi, storage: 1Gi}}
        env: [{name: MORE, value: x}, {name: EMPTY}, {name: A, value: b}]
        args: [discovery, --verbose]
        ports: [{containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: UDP, name: dns}]
      volumes:
      - name: cache
        emptyDir: {}
status: {replicas: 3}
`
	set := func(value any, path ...string) func(map[string]any) {
		return func(object map[string]any) { _ = unstructured.SetNestedField(object, value, path...) }
	}
	pilot := func(edit func(map[string]any)) func(map[string]any) {
		return func(object map[string]any) {
			containers, _, _ := unstructured.NestedSlice(object, "spec", "template", "spec", "containers")
			edit(containers[1].(map[string]any))
			_ = unstructured.SetNestedSlice(object, containers, "spec", "template", "spec", "containers")
		}
	}
	const at = "spec.template.spec.containers[name=pilot]"
	edits := map[string]struct {
		edit func(map[string]any)
		want string
	}{
		"defaults and what others added": {func(map[string]any) {}, ""},
		"label changed":                  {set("b", "metadata", "labels", "app.kubernetes.io/name"), "metadata.labels[app.kubernetes.io/name]"},
		"labels gone":                    {func(o map[string]any) { unstructured.RemoveNestedField(o, "metadata", "labels") }, "metadata.labels"},
		"image changed":                  {pilot(func(c map[string]any) { c["image"] = "pilot:2" }), at + ".image"},
		"container gone":                 {pilot(func(c map[string]any) { c["name"] = "other" }), at},
		"request changed":                {pilot(set("600m", "resources", "requests", "cpu")), at + ".resources.requests.cpu"},
		"variable gone":                  {pilot(func(c map[string]any) { c["env"] = c["env"].([]any)[:2] }), at + ".env[name=A]"},
		"variable no longer empty": {pilot(func(c map[string]any) {
			c["env"].([]any)[1].(map[string]any)["value"] = "x"
		}), at + ".env[name=EMPTY].value"},
		"argument more":    {pilot(func(c map[string]any) { c["args"] = append(c["args"].([]any), "x") }), at + ".args"},
		"argument changed": {pilot(func(c map[string]any) { c["args"].([]any)[1] = "x" }), at + ".args[1]"},
		"port of another protocol": {pilot(func(c map[string]any) {
			c["ports"].([]any)[1].(map[string]any)["protocol"] = "SCTP"
		}), at + ".ports[containerPort=53].protocol"},
		"false made true": {set(true, "spec", "template", "spec", "hostNetwork"), "spec.template.spec.hostNetwork"},
		"nothing said of a selector": {
			set(map[string]any{"disk": "ssd"}, "spec", "template", "spec", "nodeSelector"), "",
		},
		"volume of another kind": {func(o map[string]any) {
			_ = unstructured.SetNestedSlice(o, []any{map[string]any{"name": "cache", "hostPath": map[string]any{"path": "/"}}}, "spec", "template", "spec", "volumes")
		}, "spec.template.spec.volumes[name=cache].emptyDir"},
	}
	for name, tc := range edits {
		t.Run(name, func(t *testing.T) {
			found := object(t, live)
			tc.edit(found.Object)
			got, differs := Differs(object(t, deployment), found)
			if got != tc.want || differs != (tc.want != "") {
				t.Errorf("%q, %t; want %q", got, differs, tc.want)
			}
		})
	}
}

func TestDiffersByKind(t *testing.T) {
	const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.harbour.test}
spec:
  preserveUnknownFields: false
  versions:
  - name: v1
    schema: {openAPIV3Schema: {type: object, required: [a, b], properties: {a: {type: integer, maximum: 10, default: 1}}}}
`
	const webhook = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: a}
webhooks:
- name: a.test
  failurePolicy: Ignore
  clientConfig: {service: {name: a, namespace: b}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
`
	tests := map[string]struct{ desired, live, want string }{
		"rules are one value": {
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}, {apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}`,
			"rules",
		},
		"verbs are one value": {
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]}`,
			"rules[0].verbs[0]",
		},
		"subjects are one value": {
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, subjects: [{kind: ServiceAccount, name: a, namespace: b}]}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, subjects: [{kind: ServiceAccount, name: a, namespace: b}, {kind: User, name: mallory}]}`,
			"subjects",
		},
		"owners go by their uid": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {ownerReferences: [{apiVersion: v1, kind: A, name: a, uid: "1", controller: true}]}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {ownerReferences: [{apiVersion: v1, kind: B, name: b, uid: "2"}, {apiVersion: v1, kind: A, name: a, uid: "1", controller: true, blockOwnerDeletion: true}]}}`,
			"",
		},
		"owner gone": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {ownerReferences: [{apiVersion: v1, kind: A, name: a, uid: "1"}]}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {ownerReferences: [{apiVersion: v1, kind: A, name: a, uid: "2"}]}}`,
			"metadata.ownerReferences[uid=1]",
		},
		"ports go by their number": {
			`{apiVersion: v1, kind: Service, spec: {ports: [{port: 443, targetPort: 15017, name: https}]}}`,
			`{apiVersion: v1, kind: Service, spec: {clusterIP: 10.0.0.1, ports: [{port: 80}, {port: 443, targetPort: 15017, protocol: TCP, name: https}]}}`,
			"",
		},
		"a number is not a name": {
			`{apiVersion: v1, kind: Service, spec: {ports: [{port: 443, targetPort: 15017}]}}`,
			`{apiVersion: v1, kind: Service, spec: {ports: [{port: 443, targetPort: https}]}}`,
			"spec.ports[port=443].targetPort",
		},
		"data": {
			`{apiVersion: v1, kind: ConfigMap, data: {a: b}}`, `{apiVersion: v1, kind: ConfigMap, data: {a: c, d: e}}`, "data.a",
		},
		"nothing is asked for with null": {
			`{apiVersion: v1, kind: ConfigMap, data: null, metadata: {annotations: {}}}`, `{apiVersion: v1, kind: ConfigMap, data: {a: b}, metadata: {annotations: {c: d}}}`, "",
		},
		"texts of a Secret": {
			`{apiVersion: v1, kind: Secret, stringData: {a: ahab}}`, `{apiVersion: v1, kind: Secret, data: {a: YWhhYg==, b: ""}}`, "",
		},
		"another text of a Secret": {
			`{apiVersion: v1, kind: Secret, stringData: {a: ahab}, data: {b: Yg==}}`, `{apiVersion: v1, kind: Secret, data: {a: eA==, b: Yg==}}`, "data.a",
		},
		"a CRD as it is served": {
			crd,
			crd + `    served: true
  conversion: {strategy: None}
status: {storedVersions: [v1]}`,
			"",
		},
		"unknown kinds as they are": {
			`{apiVersion: harbour.test/v1, kind: Boat, spec: {crew: 3, sails: [{name: jib, area: 2.0}]}}`,
			`{apiVersion: harbour.test/v1, kind: Boat, spec: {crew: 3, captain: ahab, sails: [{name: jib, area: 2, set: true}]}, status: {}}`,
			"",
		},
		"lists of unknown kinds are one value": {
			`{apiVersion: harbour.test/v1, kind: Boat, spec: {sails: [{name: jib}]}}`,
			`{apiVersion: harbour.test/v1, kind: Boat, spec: {sails: [{name: jib}, {name: main}]}}`,
			"spec.sails",
		},
		"a field of an unknown kind": {
			`{apiVersion: harbour.test/v1, kind: Boat, spec: {sails: [{name: jib, area: 2}]}}`,
			`{apiVersion: harbour.test/v1, kind: Boat, spec: {sails: [{name: jib, area: 3}]}}`,
			"spec.sails[0].area",
		},
		"another type": {
			`{apiVersion: harbour.test/v1, kind: Boat, spec: {crew: [a]}}`, `{apiVersion: harbour.test/v1, kind: Boat, spec: {crew: a}}`, "spec.crew",
		},
		"what the server of a webhook writes": {
			webhook,
			`{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: a}, webhooks: [
  {name: b.test}, {name: a.test, failurePolicy: Fail, clientConfig: {caBundle: YQ==, service: {name: a, namespace: b, port: 443}},
   rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods], scope: "*"}]}]}`,
			"",
		},
		"where a webhook goes": {
			webhook,
			`{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: a}, webhooks: [
  {name: a.test, failurePolicy: Fail, clientConfig: {caBundle: YQ==, service: {name: x, namespace: b}},
   rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}]}`,
			"webhooks[name=a.test].clientConfig.service.name",
		},
		"a webhook gone": {
			webhook, `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: a}}`, "webhooks",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, differs := Differs(object(t, tc.desired), object(t, tc.live))
			if got != tc.want || differs != (tc.want != "") {
				t.Errorf("%q, %t; want %q", got, differs, tc.want)
			}
		})
	}
}
