package helm_test

import (
	"slices"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/helm/charts"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
)

// makeChart is a chart with the given templates, by name.
func makeChart(digest string, templates map[string]string) *charts.Chart {
	made := &chart.Chart{Metadata: &chart.Metadata{APIVersion: "v2", Name: "synthetic", Version: "1.2.3"}}
	for name, text := range templates {
		made.Templates = append(made.Templates, &common.File{Name: "templates/" + name, Data: []byte(text)})
	}
	return &charts.Chart{Chart: made, Digest: digest}
}

const boats = `
{{- range .Values.boats }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ . }}
data:
  captain: {{ $.Values.captain }}
{{- end }}`

// harbour is a chart with a ConfigMap for each of .Values.boats, and one of whatever else can go wrong.
var harbour = makeChart("harbour", map[string]string{
	"_name.tpl":  `{{ define "name" }}{{ .Release.Name }}-{{ .Release.Namespace }}{{ end }}`,
	"boats.yaml": boats,
	"pier.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: pier
spec:
  selector:
    matchLabels: {app: pier}
  template:
    metadata:
      labels: {app: pier}
    spec:
      containers:
      - name: pier
        image: pier:{{ .Values.captain }}
        resources:
          requests: {cpu: 0.5, memory: 1024Mi}
        ports:
        - containerPort: 53
          protocol: TCP
        - containerPort: 53
          protocol: UDP`,
	"watch.yaml": `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ include "name" . }}
rules:
- apiGroups: [""]
  resources: [pods]
  verbs: [get]`,
	"customs.yaml": `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: {{ include "name" . }}
webhooks:
- name: customs.harbour.test
  clientConfig:
    service: {name: customs, namespace: {{ .Release.Namespace }}}
    {{- with .Values.bundle }}
    caBundle: {{ . }}
    {{- end }}
  rules:
  - {apiGroups: [harbour.test], apiVersions: [v1], operations: [CREATE], resources: [boats]}
  {{- if .Release.IsInstall }}
  failurePolicy: Ignore
  {{- end }}
  sideEffects: None
  admissionReviewVersions: [v1]`,
})

// spec of a release of the harbour, in a namespace of its own.
func (h *hub) harbour(captain string, boats ...any) release.Spec {
	h.t.Helper()
	return release.Spec{
		Name: "harbour", Namespace: h.cluster.Namespace(h.t), Owner: h.owner(), Chart: harbour,
		Values: map[string]any{"captain": captain, "boats": boats},
	}
}

// and is the same release with other values.
func and(spec release.Spec, captain string, boats ...any) release.Spec {
	spec.Values = map[string]any{"captain": captain, "boats": boats}
	return spec
}

var synthetic = []schema.GroupVersionKind{
	{Version: "v1", Kind: "ConfigMap"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
}

// installed are the names of all objects that say they are of a release, whoever may still know of them.
func (h *hub) installed(spec release.Spec) []string {
	h.t.Helper()
	var names []string
	for _, kind := range synthetic {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := h.List(h.t.Context(), list, client.MatchingLabels{v1.LabelPassage: v1.PassageRevision}); err != nil {
			h.t.Fatal(err)
		}
		for i := range list.Items {
			annotations := list.Items[i].GetAnnotations()
			if annotations["meta.helm.sh/release-name"] == spec.Name && annotations["meta.helm.sh/release-namespace"] == spec.Namespace {
				names = append(names, describe(&list.Items[i]))
			}
		}
	}
	slices.Sort(names)
	return names
}

func names(objects []*unstructured.Unstructured) []string {
	var all []string
	for _, object := range objects {
		all = append(all, describe(object))
	}
	slices.Sort(all)
	return all
}
