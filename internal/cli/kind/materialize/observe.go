package materialize

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/rollout"
)

// environment is a Materialize and all that belongs to it.
type environment struct {
	rollout.Observed
	// pods of the generation that is to serve, or else of the one that does.
	pods []corev1.Pod
}

// observe reads a Materialize and its objects, without the kinds that the user may not list and the plan can do without. Those
// that are known already are not listed again.
func observe(ctx context.Context, reader client.Reader, r connect.Resource, unlisted ...schema.GroupVersionKind) (environment, error) {
	m := &v1alpha2.Materialize{}
	if err := r.Get(ctx, reader, m); err != nil {
		return environment{}, err
	}
	lenient := &forbiddenTolerantReader{reader, unlisted}
	observed, err := rollout.Observe(ctx, m, rollout.NewReader(lenient), rollout.RecordedAnswers(m))
	e := environment{Observed: observed}
	if err == nil && m.Status.ResourceID != "" {
		e.pods, err = podsOf(ctx, lenient, m, e.generationToShow())
	}
	e.Unlisted = lenient.forbidden
	return e, err
}

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// isRollingOut tells whether another generation is to serve.
func (e environment) isRollingOut() bool {
	return e.Promoting() || e.Hash != e.Completed()
}

func (e environment) generationToShow() int64 {
	if e.isRollingOut() {
		return e.Materialize.Status.ActiveGeneration + 1
	}
	return e.Materialize.Status.ActiveGeneration
}

func podsOf(ctx context.Context, reader client.Reader, m *v1alpha2.Materialize, generation int64) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := reader.List(ctx, &pods, client.InNamespace(m.Namespace), client.MatchingLabels{
		v1alpha2.LabelResourceID: m.Status.ResourceID, v1alpha2.LabelGeneration: strconv.FormatInt(generation, 10),
	})
	if err != nil {
		return nil, fmt.Errorf("list the pods of generation %d: %w", generation, err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods.Items, nil
}

// forbiddenTolerantReader finds nothing of the kinds that may not be listed, and notes them.
type forbiddenTolerantReader struct {
	client.Reader
	forbidden []schema.GroupVersionKind
}

func (r *forbiddenTolerantReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	kind := list.GetObjectKind().GroupVersionKind()
	if _, pods := list.(*corev1.PodList); pods {
		kind = podKind
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	if slices.Contains(r.forbidden, kind) {
		return nil
	}
	err := r.Reader.List(ctx, list, options...)
	if !apierrors.IsForbidden(err) || slices.Contains([]string{"ConfigMap", "StatefulSet", "Service"}, kind.Kind) {
		return err
	}
	r.forbidden = append(r.forbidden, kind)
	return nil
}

func kindNames(kinds []schema.GroupVersionKind) string {
	var names []string
	for _, kind := range kinds {
		names = append(names, kind.Kind+"s")
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}
