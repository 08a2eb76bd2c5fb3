package adoption

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// followAgain is how often a kind is tried again that could not be followed.
const followAgain = 20 * time.Second

// kinds are those of the hub that policies select. A kind that is not there, or not to be read, holds up no other.
type kinds struct {
	mapper meta.RESTMapper
	reader client.Reader
	// watch has the detector hear of all resources of a kind.
	watch func(schema.GroupVersionKind)

	mu       sync.Mutex
	followed map[schema.GroupVersionKind]bool
	trouble  map[schema.GroupVersionKind]error
}

// follow a kind from now on, if it is possible.
func (k *kinds) follow(ctx context.Context, kind schema.GroupVersionKind) error {
	if k.follows(kind) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	err := k.try(ctx, kind)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.trouble[kind] = err
		return err
	}
	delete(k.trouble, kind)
	if !k.followed[kind] {
		k.watch(kind)
		k.followed[kind] = true
	}
	return nil
}

func (k *kinds) follows(kind schema.GroupVersionKind) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.followed[kind]
}

// try reads one object, for an informer that is refused would say so to nobody.
func (k *kinds) try(ctx context.Context, kind schema.GroupVersionKind) error {
	mapping, err := k.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("the hub has no kind %s in %s: install its CRD on the hub, or write the kind as the hub does", kind.Kind, kind.GroupVersion())
	}
	if err != nil {
		return fmt.Errorf("find out about kind %s: %w", kind.Kind, err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err = k.reader.List(ctx, list, client.Limit(1))
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("the operator may not read %s on the hub: let it get, list and watch resource %s of group %q, in rbac.extraRules of its chart",
			kind.Kind, mapping.Resource.Resource, kind.Group)
	}
	if err != nil {
		return fmt.Errorf("list %s on the hub: %w", kind.Kind, err)
	}
	return nil
}

// Start tries kinds again that could not be followed, for as long as the operator leads.
func (k *kinds) Start(ctx context.Context) error {
	ticker := time.NewTicker(followAgain)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		k.mu.Lock()
		var missing []schema.GroupVersionKind
		for kind := range k.trouble {
			missing = append(missing, kind)
		}
		k.mu.Unlock()
		for _, kind := range missing {
			_ = k.follow(ctx, kind)
		}
	}
}

// wrong is why something that a policy selects cannot be followed.
func (k *kinds) wrong(ctx context.Context, policy *Policy) error {
	for _, s := range policy.Spec.ResourceSelectors {
		if err := k.follow(ctx, schema.FromAPIVersionAndKind(s.APIVersion, s.Kind)); err != nil {
			return err
		}
	}
	return nil
}
