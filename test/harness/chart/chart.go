// Package chart renders Fairlead's Helm chart and puts it into a cluster, for
// those who have no helm at hand.
package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader"
	"helm.sh/helm/v4/pkg/engine"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/test/harness/cluster"
)

// Release is the chart, rendered.
type Release struct {
	Namespace string
	Objects   []*unstructured.Unstructured
	Notes     string
}

// Render renders charts/fairlead as `helm install NAME -n NAMESPACE` would.
func Render(name, namespace string, values map[string]any) (Release, error) {
	root, err := cluster.Root()
	if err != nil {
		return Release{}, err
	}
	chart, err := loader.LoadDir(filepath.Join(root, "charts", "fairlead"))
	if err != nil {
		return Release{}, err
	}
	options := common.ReleaseOptions{Name: name, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, values, options, common.DefaultCapabilities)
	if err != nil {
		return Release{}, err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return Release{}, err
	}
	r := Release{Namespace: namespace}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		switch {
		case path.Base(file) == "NOTES.txt":
			r.Notes = files[file]
		case path.Ext(file) == ".yaml":
			objects, err := Decode(files[file])
			if err != nil {
				return Release{}, fmt.Errorf("%s: %w", file, err)
			}
			r.Objects = append(r.Objects, objects...)
		}
	}
	return r, nil
}

// Decode reads YAML documents.
func Decode(manifests string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(manifests)), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// Apply writes the release's objects, those of the given kinds or all of them.
func (r Release) Apply(ctx context.Context, c client.Client, kinds ...string) error {
	for _, object := range r.Objects {
		if len(kinds) > 0 && !slices.Contains(kinds, object.GetKind()) {
			continue
		}
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner("helm"))
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// Token of a ServiceAccount of the release, as a pod of it would get one.
func (r Release) Token(ctx context.Context, c client.Client, account string) (string, error) {
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(time.Hour.Seconds()))},
	}
	owner := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: r.Namespace}}
	if err := c.SubResource("token").Create(ctx, owner, request); err != nil {
		return "", fmt.Errorf("get a token of ServiceAccount %s/%s: %w", r.Namespace, account, err)
	}
	return request.Status.Token, nil
}
