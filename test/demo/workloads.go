package main

import (
	"bytes"
	"fmt"
	"os"
	"text/template"
)

// team is a namespace of the demo's mesh, and how the pods in it choose their control plane.
type team struct {
	Namespace string
	// Label of the namespace, such as "istio.io/rev: prod"; empty where the pods have one each.
	Label string
	// PodLabel is the same for pods.
	PodLabel  string
	Workloads []workload
}

type workload struct {
	Name string
	// ReadyAfter is how long its pods take, or never.
	ReadyAfter string
	// Timeout, if set, is how long a migration waits for it.
	Timeout string
}

// teams are 24 workloads in 8 namespaces, of which one never becomes ready.
func teams(revision, tag string, fast bool) []team {
	byRevision, byTag, byDefault := "istio.io/rev: "+revision, "istio.io/rev: "+tag, "istio-injection: enabled"
	shapes := []struct {
		namespace, label, podLabel string
		names                      []string
	}{
		{"billing", byRevision, "", []string{"invoices", "ledger", "taxes"}},
		{"catalog", byRevision, "", []string{"images", "prices", "search"}},
		{"checkout", byTag, "", []string{"cart", "payment", "vouchers"}},
		{"identity", byTag, "", []string{"login", "profiles", "sessions"}},
		{"legacy", byTag, "", []string{"mainframe", "reports", "soap"}},
		{"media", byDefault, "", []string{"encode", "stream", "upload"}},
		{"search", byDefault, "", []string{"crawler", "index", "query"}},
		{"shipping", "", byRevision, []string{"labels", "routes", "tracking"}},
	}
	var all []team
	for _, s := range shapes {
		t := team{Namespace: s.namespace, Label: s.label, PodLabel: s.podLabel}
		for i, name := range s.names {
			w := workload{Name: name, ReadyAfter: fmt.Sprintf("%ds", 1+i)}
			if fast {
				w.ReadyAfter = "0s"
			}
			if name == "mainframe" {
				w.ReadyAfter, w.Timeout = "never", "15s"
				if fast {
					w.Timeout = "2s"
				}
			}
			t.Workloads = append(t.Workloads, w)
		}
		all = append(all, t)
	}
	return all
}

var manifest = template.Must(template.New("").Parse(`{{range $team := .}}apiVersion: v1
kind: Namespace
metadata:
  name: {{.Namespace}}
{{- with .Label}}
  labels:
    {{.}}
{{- end}}
---
{{range .Workloads}}apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{.Name}}
  namespace: {{$team.Namespace}}
{{- with .Timeout}}
  annotations:
    sailoperator.io/readiness-timeout: {{.}}
{{- end}}
spec:
  replicas: 2
  selector:
    matchLabels:
      app: {{.Name}}
  template:
    metadata:
      labels:
        app: {{.Name}}
        {{with $team.PodLabel}}{{.}}{{end}}
      annotations:
        localkube.fairlead.dev/ready-after: {{.ReadyAfter}}
    spec:
      containers:
      - name: app
        image: registry.example/{{.Name}}:1
---
{{end}}{{end}}`))

func writeWorkloads(path string, all []team) error {
	var text bytes.Buffer
	if err := manifest.Execute(&text, all); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}
