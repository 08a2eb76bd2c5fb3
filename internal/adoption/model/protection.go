package model

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

// The kinds whose objects contain others.
var (
	KindNamespace = schema.GroupKind{Kind: "Namespace"}
	KindCRD       = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
)

// protectedKinds are those whose deletion deletes more than the object itself.
var protectedKinds = []schema.GroupKind{KindNamespace, KindCRD, {Kind: "PersistentVolumeClaim"}}

// IsProtectedKind tells whether the deletion of an object deletes more than itself.
func IsProtectedKind(kind schema.GroupKind) bool { return slices.Contains(protectedKinds, kind) }

// IsProtected tells whether the objects of a binding stay in clusters only because of deletionProtection.
func IsProtected(b *Binding) bool {
	return IsProtectedKind(TemplateKeyOf(b).Kind.GroupKind()) && b.Spec.DeletionProtection != policyv1alpha1.DeletionProtectionDisabled &&
		!ptr.Deref(b.Spec.PreserveResourcesOnDeletion, false)
}

// IsPreserved tells whether the objects of a binding stay in clusters when its template is deleted.
func IsPreserved(b *Binding) bool {
	return ptr.Deref(b.Spec.PreserveResourcesOnDeletion, false) || IsProtected(b)
}
