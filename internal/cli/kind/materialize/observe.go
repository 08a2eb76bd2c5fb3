package materialize

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/rollout"
)

// environment is a Materialize and all that belongs to it.
type environment struct {
	rollout.Observed
	// pods of the generation that is to serve, or else of the one that does.
	pods []corev1.Pod
}

func getMaterialize(ctx context.Context, reader client.Reader, key client.ObjectKey) (*v1alpha2.Materialize, error) {
	m := &v1alpha2.Materialize{}
	if err := reader.Get(ctx, key, m); err != nil {
		return nil, fmt.Errorf("get Materialize %s: %w", key, err)
	}
	return m, nil
}

// getEnvironment reads a Materialize and its objects, without the kinds that the user may not list and the plan can do without.
func getEnvironment(ctx context.Context, reader client.Reader, key client.ObjectKey) (environment, error) {
	m, err := getMaterialize(ctx, reader, key)
	if err != nil {
		return environment{}, err
	}
	lenient := &forbiddenTolerantReader{Reader: reader}
	e, err := observeKinds(ctx, lenient, m, nil)
	e.Unlisted = lenient.forbidden
	return e, err
}

// observeKinds reads what belongs to a Materialize, but for some kinds.
func observeKinds(ctx context.Context, reader client.Reader, m *v1alpha2.Materialize, except []schema.GroupVersionKind) (environment, error) {
	var e environment
	var err error
	if e.Observed, err = rollout.Observe(ctx, m, rollout.NewReader(reader, except...), rollout.RecordedAnswers(m)); err != nil {
		return e, err
	}
	if m.Status.ResourceID != "" && !slices.Contains(except, podKind) {
		e.pods, err = podsOf(ctx, reader, m, e.generationToShow())
	}
	return e, err
}

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// isRollingOut tells whether another generation is to serve.
func (e environment) isRollingOut() bool {
	s := e.Summary(time.Time{})
	return s.Promoting || e.Hash != s.Completed
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

// forbiddenTolerantReader finds nothing of what may not be seen, and notes that.
type forbiddenTolerantReader struct {
	client.Reader
	forbidden []schema.GroupVersionKind
}

func (r *forbiddenTolerantReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := r.Reader.List(ctx, list, options...)
	if !apierrors.IsForbidden(err) {
		return err
	}
	kind := list.GetObjectKind().GroupVersionKind()
	if _, pods := list.(*corev1.PodList); pods {
		kind = podKind
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	switch kind.Kind {
	case "ConfigMap", "StatefulSet", "Service":
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
