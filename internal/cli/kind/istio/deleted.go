package istio

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/revision/istio"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

// orphaned adds to the error about an Istio that does not exist what still refers to its revisions: it may have been the last one,
// and others report that in their status.
func orphaned(ctx context.Context, reader client.Reader, r connect.Resource, users *usage.Tracker, err error) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	references, listErr := orphanedReferences(ctx, reader, r.Cluster.Client, r.Key.Name, users)
	if listErr != nil || len(references) == 0 {
		return err
	}
	return errors.New(strings.Join(append([]string{r.NotFoundOr(err).Error()}, references...), "; "))
}

// orphanedReferences tells which labels name a revision or tag that does not exist, or a revision that goes with the Istio, and
// which tags in use follow it. Webhooks are those of the whole cluster.
func orphanedReferences(ctx context.Context, reader, webhooks client.Reader, name string, users *usage.Tracker) ([]string, error) {
	var revisions v1.IstioRevisionList
	if err := reader.List(ctx, &revisions); err != nil {
		return nil, fmt.Errorf("list IstioRevisions: %w", err)
	}
	var tags v1.IstioRevisionTagList
	if err := reader.List(ctx, &tags); err != nil {
		return nil, fmt.Errorf("list IstioRevisionTags: %w", err)
	}
	exist := map[string]bool{}
	var gone []usage.NameUsage
	for i := range revisions.Items {
		revision := &revisions.Items[i]
		exist[revision.Name] = true
		owner := metav1.GetControllerOf(revision)
		if used := users.Tag(revision.Name); owner != nil && owner.Kind == v1.IstioKind && owner.Name == name && used.Used() {
			gone = append(gone, usage.NameUsage{Name: revision.Name, Usage: used})
		}
	}
	var following []string
	for i := range tags.Items {
		tag := &tags.Items[i]
		exist[tag.Name] = true
		if used := users.Tag(tag.Name); tag.Spec.TargetRef == (v1.TargetReference{Kind: v1.IstioKind, Name: name}) && used.Used() {
			following = append(following, fmt.Sprintf("IstioRevisionTag %s, which follows it, is in use by %s; let the tag follow another Istio, "+
				"or change the labels", tag.Name, used))
		}
	}
	unresolved, err := istio.Unresolved(ctx, users, webhooks, func(name string) bool { return exist[name] })
	if err != nil {
		return nil, err
	}
	if gone = append(gone, unresolved...); len(gone) > 0 {
		return append([]string{istio.DescribeUnresolved(gone)}, following...), nil
	}
	return following, nil
}
