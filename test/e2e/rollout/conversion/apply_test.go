package conversion_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// manifest is what a person keeps in a file.
type manifest struct {
	version string
	spec    map[string]any
}

// written is a manifest of the image v1.
func written(version string) manifest {
	return manifest{version, map[string]any{
		"environmentdImageRef": imageOf("v1"), "backendSecretName": "backend",
		"balancerdReplicas": int64(1), "consoleReplicas": int64(1),
	}}
}

// withRole gives environmentd a role of AWS, which every version has in a place of its own.
func (m manifest) withRole() manifest {
	const role = "arn:aws:iam::123456789012:role/materialize"
	if m.version == older {
		return m.with("environmentdIamRoleArn", role)
	}
	return m.with("serviceAccountAnnotations", map[string]any{v1alpha2.AnnotationRoleArn: role})
}

func (m manifest) with(field string, value any) manifest {
	m.spec = maps.Clone(m.spec)
	m.spec[field] = value
	return m
}

func (m manifest) without(field string) manifest {
	m.spec = maps.Clone(m.spec)
	delete(m.spec, field)
	return m
}

func (m manifest) image(tag string) manifest { return m.with("environmentdImageRef", imageOf(tag)) }

func (m manifest) object(namespace string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: v1alpha2.GroupVersion.Group, Version: m.version, Kind: v1alpha2.MaterializeKind})
	u.SetNamespace(namespace)
	u.SetName("mz")
	if m.spec != nil {
		u.Object["spec"] = maps.Clone(m.spec)
	}
	return u
}

// way to apply a manifest.
type way func(context.Context, *environment, manifest) error

// ways are those of kubectl.
var ways = map[string]way{"client-side": clientSide, "server-side": serverSide("kubectl")}

// serverSide has the API server work out what changes, for a field manager.
func serverSide(manager string) way {
	return func(ctx context.Context, e *environment, m manifest) error {
		configuration := client.ApplyConfigurationFromUnstructured(m.object(e.namespace))
		return e.Apply(ctx, configuration, client.FieldOwner(manager), client.ForceOwnership)
	}
}

// clientSide works it out like kubectl does: from what was applied last, what is to be, and what is.
func clientSide(ctx context.Context, e *environment, m manifest) error {
	object := m.object(e.namespace)
	plain, err := json.Marshal(object)
	if err != nil {
		return err
	}
	object.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: string(plain)})
	live := manifest{version: m.version}.object(e.namespace)
	err = e.Get(ctx, client.ObjectKeyFromObject(live), live)
	if apierrors.IsNotFound(err) {
		return e.Create(ctx, object, client.FieldOwner("kubectl-client-side-apply"))
	}
	if err != nil {
		return err
	}
	modified, err := json.Marshal(object)
	if err != nil {
		return err
	}
	current, err := json.Marshal(live)
	if err != nil {
		return err
	}
	original := []byte(live.GetAnnotations()[corev1.LastAppliedConfigAnnotation])
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current)
	if err != nil {
		return fmt.Errorf("work out what changes: %w", err)
	}
	if string(patch) == "{}" {
		return nil
	}
	return e.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("kubectl-client-side-apply"))
}
