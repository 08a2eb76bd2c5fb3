package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	sigsyaml "sigs.k8s.io/yaml"
)

const installNamespace = "fairlead-system"

// oldestKubernetes is the version to render for: the oldest that the chart takes, so that the result fits all.
var oldestKubernetes = &common.KubeVersion{Version: "v1.31.0", Major: "1", Minor: "31"}

// writeChart packages the chart with the version of the release, and the image pinned by its digest.
func (r release) writeChart(digest string) (*chart.Chart, error) {
	loaded, err := loader.LoadDir(filepath.Join(r.root, "charts", "fairlead"))
	if err != nil {
		return nil, fmt.Errorf("load the chart: %w", err)
	}
	loaded.Metadata.Version, loaded.Metadata.AppVersion = r.version.number(), r.version.number()
	for _, file := range loaded.Raw {
		if file.Name != chartutil.ValuesfileName {
			continue
		}
		for _, change := range []struct{ key, value string }{{"repository", r.repository}, {"digest", digest}} {
			if file.Data, err = setValue(file.Data, "image", change.key, change.value); err != nil {
				return nil, err
			}
		}
		loaded.Values = map[string]any{}
		if err := sigsyaml.Unmarshal(file.Data, &loaded.Values); err != nil {
			return nil, fmt.Errorf("read the values of the chart: %w", err)
		}
	}
	loaded.StampModTimes(r.source.time)
	if _, err := chartutil.Save(loaded, r.dist); err != nil {
		return nil, fmt.Errorf("package the chart: %w", err)
	}
	return loaded, nil
}

// setValue replaces a value of values.yaml in its line, so that all comments stay.
func setValue(values []byte, section, key, value string) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(values, &document); err != nil {
		return nil, fmt.Errorf("read the values of the chart: %w", err)
	}
	node := field(field(document.Content[0], section), key)
	if node == nil || node.Kind != yaml.ScalarNode {
		return nil, fmt.Errorf("the chart has no value %s.%s", section, key)
	}
	lines := strings.Split(string(values), "\n")
	line := &lines[node.Line-1]
	*line = (*line)[:node.Column-1] + value
	return []byte(strings.Join(lines, "\n")), nil
}

func field(mapping *yaml.Node, key string) *yaml.Node {
	if mapping == nil {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// writeInstallManifest renders the chart, as `helm template` does, for who has no Helm.
func (r release) writeInstallManifest(packaged *chart.Chart) error {
	install := action.NewInstall(action.NewConfiguration())
	install.DryRunStrategy = action.DryRunClient
	install.KubeVersion = oldestKubernetes
	install.ReleaseName, install.Namespace, install.Replace = "fairlead", installNamespace, true
	rendered, err := install.RunWithContext(context.Background(), packaged, map[string]any{})
	if err != nil {
		return fmt.Errorf("render the chart: %w", err)
	}
	image := packaged.Values["image"].(map[string]any)
	text := fmt.Sprintf(`# Fairlead %s, for clusters without Helm:
#
#   kubectl apply --server-side -f install.yaml
#
# Nodes pull the image %s@%s.
---
apiVersion: v1
kind: Namespace
metadata:
  name: %s
%s
`, r.version, image["repository"], image["digest"], installNamespace, strings.TrimSpace(rendered.(*releasev1.Release).Manifest))
	return os.WriteFile(r.path("install.yaml"), []byte(text), 0o644)
}
