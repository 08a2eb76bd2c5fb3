package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/test/harness/wait"
)

const (
	environments = "materializes.materialize.cloud"
	tags         = "istiorevisiontags.sailoperator.io"
)

// environment is one that was stored before there was a v1alpha2.
func (i *installation) environment() *v1alpha2.Materialize {
	m := &v1alpha2.Materialize{ObjectMeta: metav1.ObjectMeta{Namespace: i.namespace, Name: "mz"}}
	m.Spec.EnvironmentdImageRef, m.Spec.BackendSecretName = "materialize/environmentd:v1", "backend"
	m.Spec.InternalCertificateSpec = &v1alpha2.CertificateSpec{IssuerRef: &v1alpha2.CertificateIssuerRef{Name: "ca"}}
	return m
}

// storeEnvironment leaves an environment behind, and a CRD of which older versions may be stored.
func (i *installation) storeEnvironment(t testing.TB) {
	t.Helper()
	if err := client.IgnoreAlreadyExists(i.Create(t.Context(), certificates())); err != nil {
		t.Fatal(err)
	}
	i.storedBefore(t, environments, "v1alpha1", "v1alpha2")
	wait.Until(t, func(ctx context.Context) error {
		err := i.DeleteAllOf(ctx, &v1alpha2.Materialize{}, client.InNamespace(i.namespace))
		return errors.Join(err, client.IgnoreAlreadyExists(i.Create(ctx, i.environment())))
	})
	i.removeOwnedObjects(t)
}

// storedBefore leaves a CRD behind of which these versions may be stored.
func (i *installation) storedBefore(t testing.TB, name string, versions ...string) {
	t.Helper()
	known, err := crds.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.IgnoreAlreadyExists(i.Create(t.Context(), known[0])); err != nil {
		t.Fatal(err)
	}
	stored, err := json.Marshal(map[string]any{"status": map[string]any{"storedVersions": versions}})
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Status().Patch(t.Context(), known[0], client.RawPatch(types.MergePatchType, stored)); err != nil {
		t.Fatal(err)
	}
}

// removeOwnedObjects does what the garbage collector would.
func (i *installation) removeOwnedObjects(t testing.TB) {
	t.Helper()
	for _, kind := range []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"},
	} {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(kind)
		// A kind is not served at once when its CRD is new.
		wait.Until(t, func(ctx context.Context) error { return i.DeleteAllOf(ctx, object, client.InNamespace(i.namespace)) })
	}
}

// rolledOut plays what would run a generation, and waits until that serves.
func (i *installation) rolledOut(ctx context.Context, generation int64) error {
	m := i.environment()
	if err := i.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
		return err
	}
	if m.Status.ActiveGeneration == generation && m.Status.LastCompletedRolloutHash == m.Status.RequestedRolloutHash {
		return nil
	}
	name := fmt.Sprintf("mz%s-environmentd-%d", m.Status.ResourceID, generation)
	var set appsv1.StatefulSet
	if err := i.Get(ctx, client.ObjectKey{Namespace: i.namespace, Name: name}, &set); err != nil {
		return errors.Join(err, fmt.Errorf("it says %+v", m.Status.Conditions))
	}
	if set.Status.ObservedGeneration != set.Generation {
		set.Status = appsv1.StatefulSetStatus{
			ObservedGeneration: set.Generation, Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1,
			CurrentRevision: "one", UpdateRevision: "one",
		}
		if err := i.Status().Update(ctx, &set); err != nil {
			return err
		}
	}
	return fmt.Errorf("generation %d serves, not yet %d: %+v", m.Status.ActiveGeneration, generation, m.Status.Conditions)
}

// rollOn asks for another image, and for no certificate.
func (i *installation) rollOn(ctx context.Context) error {
	change, err := json.Marshal(map[string]any{"spec": map[string]any{
		"environmentdImageRef": "materialize/environmentd:v2", "internalCertificateSpec": nil,
	}})
	if err != nil {
		return err
	}
	return i.Patch(ctx, i.environment(), client.RawPatch(types.MergePatchType, change))
}

// storedAnew tells whether a CRD has forgotten the older version.
func storedAnew(c client.Reader, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := c.Get(ctx, client.ObjectKey{Name: name}, &crd); err != nil {
			return err
		}
		if stored := crd.Status.StoredVersions; len(stored) != 1 {
			return fmt.Errorf("stored are %v", stored)
		}
		return nil
	}
}

// noCertificate tells whether the one that is no longer asked for is gone.
func (i *installation) noCertificate(ctx context.Context) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "CertificateList"})
	if err := i.List(ctx, list, client.InNamespace(i.namespace)); err != nil {
		return err
	}
	if len(list.Items) > 0 {
		return fmt.Errorf("certificate %s is still there", list.Items[0].Name)
	}
	return nil
}

// certificates is the CRD of cert-manager's kind, as far as Fairlead needs it.
func certificates() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "certificates.cert-manager.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "cert-manager.io", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "certificates", Singular: "certificate", Kind: "Certificate", ListKind: "CertificateList",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
				}},
			}},
		},
	}
}
