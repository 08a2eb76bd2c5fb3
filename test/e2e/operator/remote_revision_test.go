package operator_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// remoteRevisions are revisions whose istiod runs in another cluster. Of that, charts write down the address, older ones in
// another kind than newer ones.
func (i *installation) remoteRevisions() []*v1.IstioRevision {
	var revisions []*v1.IstioRevision
	for name, version := range map[string]string{"older": "v1.26.0", "newer": "v1.31.1"} {
		revisions = append(revisions, &v1.IstioRevision{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1.IstioRevisionSpec{Version: version, Namespace: i.namespace, Values: v1.Values{
				"profile": "remote", "global": map[string]any{"remotePilotAddress": "192.0.2.7"},
			}},
		})
	}
	return revisions
}

func (i *installation) installRemoteRevisions(ctx context.Context) error {
	var left []error
	for _, revision := range i.remoteRevisions() {
		left = append(left, client.IgnoreAlreadyExists(i.Create(ctx, revision)))
		var found v1.IstioRevision
		left = append(left, i.Get(ctx, client.ObjectKeyFromObject(revision), &found))
		if !meta.IsStatusConditionTrue(found.Status.Conditions, string(v1.ConditionReady)) {
			left = append(left, fmt.Errorf("IstioRevision %s is not ready: %+v", revision.Name, found.Status.Conditions))
		}
	}
	return errors.Join(left...)
}

// upgradeRemoteRevision moves the older one to a version whose charts write the address down in the newer kind.
func (i *installation) upgradeRemoteRevision(ctx context.Context) error {
	older := &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: "older"}}
	upgrade := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"version":"v1.31.1"}}`))
	if err := i.Patch(ctx, older, upgrade); err != nil {
		return err
	}
	address := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: i.namespace, Name: "istiod-older"}}
	address.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Endpoints"))
	return isGone(ctx, i, address)
}

func (i *installation) removeRemoteRevisions(ctx context.Context) error {
	var left []error
	for _, revision := range i.remoteRevisions() {
		left = append(left, client.IgnoreNotFound(i.Delete(ctx, revision)), isGone(ctx, i, revision))
	}
	return errors.Join(left...)
}
