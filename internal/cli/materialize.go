package cli

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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/rollout"
	"github.com/fairlead/fairlead/internal/rollout/conversion"
)

// materializeOf reads what the API server made of a manifest, in whichever version.
func materializeOf(object *unstructured.Unstructured) (*v1alpha2.Materialize, error) {
	content, err := conversion.Convert(object.Object, v1alpha2.GroupVersion.String())
	if err != nil {
		return nil, err
	}
	m := &v1alpha2.Materialize{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, m); err != nil {
		return nil, fmt.Errorf("read Materialize %s: %w", object.GetName(), err)
	}
	return m, nil
}

// environment is a Materialize and all that belongs to it.
type environment struct {
	rollout.Observed
	// pods of the generation that is to serve, or else of the one that does.
	pods []corev1.Pod
	// forbidden are the kinds that whoever asks may not look at.
	forbidden []schema.GroupVersionKind
}

func reportMaterialize(ctx context.Context, reader client.Reader, key client.ObjectKey, q query) (account, error) {
	m := &v1alpha2.Materialize{}
	err := reader.Get(ctx, key, m)
	if q.Proposed != nil && apierrors.IsNotFound(err) {
		e := environment{}
		if e.Observed, err = (rollout.Observed{}).WithSpec(q.Proposed); err != nil {
			return account{}, err
		}
		return e.report(nil, time.Now())
	}
	if err != nil {
		return account{}, fmt.Errorf("get Materialize %s: %w", key, err)
	}
	e, err := observeEnvironment(ctx, reader, m)
	if err != nil {
		return account{}, err
	}
	return e.report(q.Proposed, time.Now())
}

// observeEnvironment reads what belongs to a Materialize. What may not be seen is left out, if a rollout can be result of without it.
func observeEnvironment(ctx context.Context, reader client.Reader, m *v1alpha2.Materialize) (environment, error) {
	lenient := &forbiddenTolerantReader{Reader: reader}
	e, err := observeKinds(ctx, lenient, m, nil)
	e.forbidden = lenient.forbidden
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

// report plans for the environment as it is, or with another spec.
func (e environment) report(proposed *v1alpha2.Materialize, now time.Time) (account, error) {
	after := e.Observed
	if proposed != nil {
		var err error
		if after, err = e.WithSpec(proposed); err != nil {
			return account{}, err
		}
	}
	status := after.Materialize.Status
	result := account{
		Plan:               rollout.Plan(after, now),
		Generation:         after.Materialize.Generation,
		ObservedGeneration: status.ObservedGeneration,
		Conditions:         status.Conditions,
		Rollout:            &e,
		Decision:           decideRollout(e.Observed, proposed, now),
	}
	result.Plan.Steps = slices.DeleteFunc(result.Plan.Steps, func(s passage.Step) bool {
		return slices.Contains(e.forbidden, schema.FromAPIVersionAndKind(s.Object.APIVersion, s.Object.Kind))
	})
	if len(result.Plan.Steps) == 0 && after.Hash == after.Summary(now).Completed {
		result.Plan.Steps = []passage.Step{{
			Object: result.Plan.Subject, Action: rollout.ActionComplete, To: result.Plan.Target, State: passage.Done,
			Reason: passage.Because(v1alpha2.ReasonApplied, "the active generation serves the current spec"),
		}}
	}
	if len(e.forbidden) > 0 {
		result.Note = "Left out, because you may not list them: " + kindNames(e.forbidden) + "."
	}
	return result, nil
}

func kindNames(kinds []schema.GroupVersionKind) string {
	var names []string
	for _, kind := range kinds {
		names = append(names, kind.Kind+"s")
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}
