package release

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"
)

// discoveryTimeout is that of client-go.
const discoveryTimeout = 32 * time.Second

// rendering is the result of rendering a spec: objects or a *RenderError.
type rendering struct {
	fingerprint string
	objects     []*unstructured.Unstructured
	err         error
}

// Render returns the objects of a release in the order in which they are installed. The objects are shared between callers and
// must not be changed. An error about the chart or its values is a *RenderError.
func (m *Manager) Render(ctx context.Context, spec Spec) ([]*unstructured.Unstructured, error) {
	key, fingerprint := spec.key(), spec.Fingerprint()
	kept, _ := m.rendered.Load(key)
	done, ok := kept.(rendering)
	if !ok || done.fingerprint != fingerprint {
		capabilities, err := m.capabilities(ctx)
		if err != nil {
			return nil, fmt.Errorf("render release %s: %w", key, err)
		}
		count(opRender)
		objects, err := render(ctx, spec, capabilities)
		if err != nil {
			err = &RenderError{err}
		} else if err := m.setNamespaces(objects, spec.Namespace); err != nil {
			return nil, fmt.Errorf("render release %s: %w", key, err)
		}
		done = rendering{fingerprint, objects, err}
		m.rendered.Store(key, done)
	}
	return slices.Clone(done.objects), done.err
}

// Forget drops the cached rendering of a release.
func (m *Manager) Forget(namespace, name string) {
	m.rendered.Delete(types.NamespacedName{Namespace: namespace, Name: name})
}

// render runs the templates as for a first install, without requests to the cluster: `lookup` finds nothing.
func render(ctx context.Context, spec Spec, capabilities *common.Capabilities) ([]*unstructured.Unstructured, error) {
	chart := pick(spec.Chart.Chart, spec.Only)
	if wants := chart.Metadata.KubeVersion; wants != "" && !chartutil.IsCompatibleRange(wants, capabilities.KubeVersion.String()) {
		return nil, fmt.Errorf("chart requires kubeVersion: %s which is incompatible with Kubernetes %s", wants, capabilities.KubeVersion.Version)
	}
	if err := chartutil.ProcessDependencies(chart, spec.Values); err != nil {
		return nil, err
	}
	options := common.ReleaseOptions{Name: spec.Name, Namespace: spec.Namespace, Revision: 1, IsInstall: true}
	values, err := util.ToRenderValues(chart, spec.Values, options, capabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{}.RenderWithContext(ctx, chart, values)
	if err != nil {
		return nil, err
	}
	for name := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(files, name)
		}
	}
	_, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, manifest := range manifests {
		found, err := decode(manifest.Content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", manifest.Name, err)
		}
		objects = append(objects, found...)
	}
	for _, object := range objects {
		setOwnership(object, spec.key(), spec.controller())
	}
	return objects, nil
}

// decode reads one YAML document: an object, a list of them, or nothing but comments.
func decode(document string) ([]*unstructured.Unstructured, error) {
	raw, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		return nil, err
	}
	if string(raw) == "null" {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		return nil, err
	}
	if !object.IsList() {
		return []*unstructured.Unstructured{object}, nil
	}
	list, err := object.ToList()
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for i := range list.Items {
		objects = append(objects, &list.Items[i])
	}
	return objects, nil
}

// setNamespaces sets the namespace of the release on namespaced objects without one. It fails for a kind that the cluster does
// not have, before anything is recorded or written.
func (m *Manager) setNamespaces(objects []*unstructured.Unstructured, namespace string) error {
	for _, object := range objects {
		kind := object.GroupVersionKind()
		mapping, err := m.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return newObjectError("find the kind of", object, err)
		}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace && object.GetNamespace() == "" {
			object.SetNamespace(namespace)
		}
	}
	return nil
}

func (m *Manager) forgetCapabilities() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = nil
}

func (m *Manager) capabilities(ctx context.Context) (*common.Capabilities, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		known, err := m.discoverCapabilities(ctx)
		if err != nil {
			return nil, fmt.Errorf("discover the capabilities of the cluster: %w", err)
		}
		m.known = known
	}
	return m.known, nil
}

func (m *Manager) discoverCapabilities(ctx context.Context) (*common.Capabilities, error) {
	limited := m.httpFor(ctx)
	limited.Timeout = discoveryTimeout
	client, err := discovery.NewDiscoveryClientForConfigAndClient(m.config, limited)
	if err != nil {
		return nil, err
	}
	version, err := client.ServerVersion()
	if err != nil {
		return nil, err
	}
	served, err := action.GetVersionSet(client)
	if err != nil {
		return nil, err
	}
	parsed, err := common.ParseKubeVersion(version.GitVersion)
	if err != nil {
		return nil, fmt.Errorf("version %s: %w", version.GitVersion, err)
	}
	return &common.Capabilities{
		KubeVersion: *parsed, APIVersions: served, HelmVersion: common.DefaultCapabilities.HelmVersion,
	}, nil
}
