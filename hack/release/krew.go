package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// krewPlugin is a manifest of krew, by which kubectl gets `kubectl fairlead`.
type krewPlugin struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       krewSpec          `json:"spec"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
	Bin    string `json:"bin"`
}

func (r release) writeKrewManifest(archives []archive) error {
	plugin := krewPlugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2",
		Kind:       "Plugin",
		Metadata:   map[string]string{"name": "fairlead"},
		Spec: krewSpec{
			Version:          string(r.version),
			Homepage:         "https://github.com/fairlead/fairlead",
			ShortDescription: "Move running workloads with nobody noticing",
			Description: "Shows what Fairlead will move, how far it is, and pauses, resumes, retries and aborts: workloads to a new revision of Istio,\n" +
				"resources under a hub, environments of Materialize to their next generation, and meshes to MeshServices.",
		},
	}
	for _, a := range archives {
		sum, err := sha256File(r.path(a.name))
		if err != nil {
			return err
		}
		p := krewPlatform{URI: fmt.Sprintf("%s/%s/%s", r.downloads, r.version, a.name), SHA256: sum, Bin: a.platform.binary()}
		p.Selector.MatchLabels = map[string]string{"os": a.platform.os, "arch": a.platform.arch}
		plugin.Spec.Platforms = append(plugin.Spec.Platforms, p)
	}
	text, err := yaml.Marshal(plugin)
	if err != nil {
		return err
	}
	return os.WriteFile(r.path("krew.yaml"), text, 0o644)
}
