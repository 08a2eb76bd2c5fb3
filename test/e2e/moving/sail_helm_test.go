package moving_test

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	helmkube "helm.sh/helm/v4/pkg/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/test/harness/cluster"
)

// setHelmManager has Helm write as the Sail Operator does: by its name, and client-side.
var setHelmManager = sync.OnceFunc(func() { helmkube.ManagedFieldsManager = "sail-operator" })

// sailRelease is a release as the Sail Operator makes them.
type sailRelease struct {
	namespace, name string
	chart           *chart.Chart
	values          map[string]any
	// owner of all objects.
	owner metav1.OwnerReference
}

// sailChart is one of those of a version of Istio that the Sail Operator brings.
func sailChart(t *testing.T, version, name string) *chart.Chart {
	t.Helper()
	source := name
	if name == "revisiontags" {
		source = "istiod" // The Sail Operator makes that chart of templates of istiod.
	}
	loaded, err := loader.LoadDir(filepath.Join(cluster.Charts(t), version, source))
	if err != nil {
		t.Fatal(err)
	}
	if name != source {
		loaded.Metadata.Name = name
		kept := loaded.Templates[:0]
		for _, template := range loaded.Templates {
			if base := filepath.Base(template.Name); strings.HasPrefix(base, "revision-tags") || strings.HasPrefix(base, "zz") || strings.HasPrefix(base, "_") {
				kept = append(kept, template)
			}
		}
		loaded.Templates = kept
	}
	return loaded
}

func (w world) helm(t *testing.T, namespace string) *action.Configuration {
	t.Helper()
	setHelmManager()
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = ptr.To(w.Kubeconfig()), &namespace
	configuration := action.NewConfiguration()
	if err := configuration.Init(flags, namespace, "secret"); err != nil {
		t.Fatal(err)
	}
	return configuration
}

func (w world) sailInstalls(t *testing.T, r sailRelease) {
	t.Helper()
	install := action.NewInstall(w.helm(t, r.namespace))
	install.Namespace, install.ReleaseName, install.ServerSideApply = r.namespace, r.name, false
	install.WaitStrategy, install.PostRenderer = helmkube.HookOnlyStrategy, ofSail{owner: r.owner}
	if _, err := install.RunWithContext(t.Context(), r.chart, r.values); err != nil {
		t.Fatalf("install release %s/%s: %v", r.namespace, r.name, err)
	}
}

// sailUpgrades is what the Sail Operator does again and again.
func (w world) sailUpgrades(t *testing.T, r sailRelease) {
	t.Helper()
	upgrade := action.NewUpgrade(w.helm(t, r.namespace))
	upgrade.Namespace, upgrade.ServerSideApply, upgrade.MaxHistory, upgrade.SkipCRDs = r.namespace, "false", 1, true
	upgrade.WaitStrategy, upgrade.PostRenderer = helmkube.HookOnlyStrategy, ofSail{r.owner, true}
	if _, err := upgrade.RunWithContext(t.Context(), r.name, r.chart, r.values); err != nil {
		t.Errorf("upgrade release %s/%s: %v", r.namespace, r.name, err)
	}
}

// ofSail marks the objects of a release as the Sail Operator's. In upgrades it leaves the failure policy of validation to istiod.
type ofSail struct {
	owner   metav1.OwnerReference
	upgrade bool
}

// Run implements Helm's PostRenderer.
func (o ofSail) Run(rendered *bytes.Buffer) (*bytes.Buffer, error) {
	var marked bytes.Buffer
	for decoder := yaml.NewYAMLOrJSONDecoder(rendered, 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return &marked, nil
		} else if err != nil {
			return nil, err
		}
		if len(object.Object) == 0 {
			continue
		}
		object.SetOwnerReferences([]metav1.OwnerReference{o.owner})
		if hooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks"); o.upgrade && object.GetKind() == "ValidatingWebhookConfiguration" {
			for _, hook := range hooks {
				delete(hook.(map[string]any), "failurePolicy")
			}
			object.Object["webhooks"] = hooks
		}
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["managed-by"] = "sail-operator"
		object.SetLabels(labels)
		text, err := sigsyaml.Marshal(object.Object)
		if err != nil {
			return nil, err
		}
		marked.WriteString("---\n")
		marked.Write(text)
	}
}
