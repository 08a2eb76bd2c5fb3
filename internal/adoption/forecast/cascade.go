package forecast

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/adoption/policy"
	"github.com/fairlead/fairlead/internal/passage"
)

// cascading are the Namespaces and CustomResourceDefinitions of bindings that are not protected, by object without cluster.
func cascading(planned []plannedBinding) map[passage.Object]*unstructured.Unstructured {
	all := map[passage.Object]*unstructured.Unstructured{}
	for _, p := range planned {
		kind := p.template.GroupVersionKind().GroupKind()
		if (kind == model.KindNamespace || kind == model.KindCRD) && !model.IsPreserved(p.binding) {
			all[model.ObjectOf(p.template)] = p.template
		}
	}
	return all
}

// addCascades counts what the deletion of objects would delete with them, in each cluster that has them.
func (f *simulator) addCascades(ctx context.Context, outcomes []Outcome, templates map[passage.Object]*unstructured.Unstructured) {
	for i := range outcomes {
		o := &outcomes[i]
		object := o.Object
		object.Cluster = ""
		template := templates[object]
		if template == nil || o.Failed || o.Action == model.ActionCreate {
			continue
		}
		m, err := f.members.ConnectForCommand(ctx, f.clusters[o.Object.Cluster])
		if err != nil {
			continue // the cluster is reported already
		}
		o.Cascade, err = countCascade(ctx, m, template)
		f.members.Disconnect(o.Object.Cluster)
		o.Note = strings.TrimPrefix(o.Note+"; "+describeCascade(*o, err), "; ")
	}
}

// countCascade counts the objects in a namespace, or the custom resources of a CustomResourceDefinition, by kind. Kinds that may not
// be read are left out.
func countCascade(ctx context.Context, m *member.Client, template *unstructured.Unstructured) (map[string]int64, error) {
	kinds, namespace := customResourceKinds(template), ""
	if template.GroupVersionKind().GroupKind() == model.KindNamespace {
		namespace = template.GetName()
		var err error
		if kinds, err = m.DiscoverNamespacedKinds(); err != nil {
			return nil, err
		}
	}
	counts := map[string]int64{}
	for _, kind := range kinds {
		if kind.Kind == "Event" {
			continue
		}
		n, err := countObjects(ctx, m, kind, namespace)
		if err != nil {
			return counts, err
		}
		if n > 0 {
			counts[kind.Kind] += n
		}
	}
	return counts, nil
}

// customResourceKinds is the kind that a CustomResourceDefinition defines, in its stored version.
func customResourceKinds(crd *unstructured.Unstructured) []schema.GroupVersionKind {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok && version["served"] == true {
			name, _ := version["name"].(string)
			return []schema.GroupVersionKind{{Group: group, Version: name, Kind: kind}}
		}
	}
	return nil
}

func countObjects(ctx context.Context, m *member.Client, kind schema.GroupVersionKind, namespace string) (int64, error) {
	var n int64
	list := &metav1.PartialObjectMetadataList{}
	for {
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := m.API.List(ctx, list, client.InNamespace(namespace), client.Limit(500), client.Continue(list.Continue))
		switch {
		case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err), meta.IsNoMatchError(err):
			return 0, nil
		case err != nil:
			return 0, fmt.Errorf("list %s in cluster %s: %w", kind.Kind, m.Name, err)
		}
		for i := range list.Items {
			list.Items[i].SetGroupVersionKind(kind)
			if namespace == "" || !policy.IsClusterLocal(model.TemplateOf(&list.Items[i])) {
				n++
			}
		}
		if list.Continue == "" {
			return n, nil
		}
	}
}

// describeCascade is what the deletion of an object deletes with it.
func describeCascade(o Outcome, err error) string {
	if err != nil {
		return fmt.Sprintf("what its deletion would delete with it is unknown: %v", err)
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(o.Cascade)) {
		parts = append(parts, fmt.Sprintf("%s %d", kind, o.Cascade[kind]))
	}
	what := "nothing that the hub may read"
	if len(parts) > 0 {
		what = strings.Join(parts, ", ")
	}
	if o.Action == model.ActionDelete {
		return "its deletion deletes with it: " + what
	}
	return "spec.deletionProtection is Disabled, so the deletion of its template would delete with it: " + what
}
