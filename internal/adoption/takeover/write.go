package takeover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// Copied is the result of writing a draft.
type Copied struct {
	// Written are the templates that were created, and Overtaken those that another client created meanwhile.
	Written, Overtaken int
	// Refused are those that the hub did not accept, by name.
	Refused []Refusal
}

// Refusal is a template that the hub did not accept, and why.
type Refusal struct {
	Object passage.Object
	Err    error
}

// Write writes a draft to the hub, the policies last: until then nothing in the cluster is changed, and an interrupted command can
// be run again.
func (d Draft) Write(ctx context.Context, hub client.Client, progress func(done int)) (Copied, error) {
	if d.NewNamespace {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.Policies[0].Object.GetNamespace()}}
		if err := hub.Create(ctx, namespace, client.FieldOwner(model.FieldOwner)); client.IgnoreAlreadyExists(err) != nil {
			return Copied{}, fmt.Errorf("create namespace %s on the hub: %w", namespace.Name, err)
		}
	}
	c := d.copyTemplates(ctx, hub, progress)
	if err := context.Cause(ctx); err != nil {
		return c, fmt.Errorf("interrupted after %d of %d templates, before the policy was written: run the command again: %w", c.Written+c.Overtaken, len(d.Templates), err)
	}
	if c.Written+c.Overtaken+len(d.Present) == 0 {
		return c, errors.New("the hub accepted none of the templates, so there is nothing for the policy to take")
	}
	for _, p := range d.Policies {
		if err := d.writePolicy(ctx, hub, p); err != nil {
			return c, fmt.Errorf("write %s: %w; the templates are on the hub: run the command again", p, err)
		}
	}
	return c, nil
}

// writePolicy creates the policy, or adds to the existing one as it is by now: its status changes as soon as the operator takes the
// first templates.
func (d Draft) writePolicy(ctx context.Context, hub client.Client, p Policy) error {
	if p.Object.GetResourceVersion() == "" {
		return hub.Create(ctx, p.Object.DeepCopyObject().(client.Object), client.FieldOwner(model.FieldOwner))
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		have, err := getPolicy(ctx, hub, p.Object)
		if err != nil {
			return err
		}
		if have.GetUID() != p.Object.GetUID() {
			return errors.New("another client has replaced the policy")
		}
		spec := specOf(have)
		before := len(spec.ResourceSelectors)
		spec.ResourceSelectors = d.selectors(p.Object.GetLabels()[LabelAdoptedFrom], p.isNamespaced(), spec.ResourceSelectors)
		if before == len(spec.ResourceSelectors) {
			return nil
		}
		return hub.Update(ctx, have, client.FieldOwner(model.FieldOwner))
	})
}

func (d Draft) copyTemplates(ctx context.Context, hub client.Client, progress func(done int)) Copied {
	var mu sync.Mutex
	var c Copied
	var group errgroup.Group
	group.SetLimit(model.MaxConcurrent)
	for _, template := range d.Templates {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			err := hub.Create(ctx, template.DeepCopy(), client.FieldOwner(model.FieldOwner))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case ctx.Err() != nil && err != nil:
				return nil
			case apierrors.IsAlreadyExists(err):
				c.Overtaken++
			case err != nil:
				c.Refused = append(c.Refused, Refusal{model.ObjectOf(template), err})
			default:
				c.Written++
			}
			progress(c.Written + c.Overtaken + len(c.Refused))
			return nil
		})
	}
	_ = group.Wait()
	slices.SortFunc(c.Refused, func(a, b Refusal) int { return cmp.Compare(a.Object.String(), b.Object.String()) })
	return c
}

// Objects are all that a draft would write, in the order in which they can be applied.
func (d Draft) Objects() ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	if d.NewNamespace {
		namespace := &unstructured.Unstructured{}
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		namespace.SetName(d.Policies[0].Object.GetNamespace())
		all = append(all, namespace)
	}
	all = append(all, d.Templates...)
	for _, p := range d.Policies {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p.Object)
		if err != nil {
			return nil, fmt.Errorf("describe %s: %w", p, err)
		}
		delete(fields, "status")
		metadata := map[string]any{"name": p.Object.GetName(), "labels": manifest.ToAny(p.Object.GetLabels())}
		if p.isNamespaced() {
			metadata["namespace"] = p.Object.GetNamespace()
		}
		fields["metadata"] = metadata
		all = append(all, &unstructured.Unstructured{Object: fields})
	}
	return all, nil
}
