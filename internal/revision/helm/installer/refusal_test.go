package installer

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/helm/charts"
	"github.com/fairlead/fairlead/internal/revision/helm/release"
)

func TestClassifyError(t *testing.T) {
	spec := &release.Spec{
		Name: "a-istiod", Namespace: "mesh", ChartVersion: "v1.24.0",
		Chart: &charts.Chart{Chart: &chart.Chart{Metadata: &chart.Metadata{Name: "istiod", Version: "1.24.0"}}},
	}
	state := func(status, fingerprint string) release.State {
		return release.State{Exists: true, Status: status, Fingerprint: fingerprint}
	}
	reported := func(reason v1.Reason, generation int64) []metav1.Condition {
		return []metav1.Condition{{
			Type: string(v1.ConditionReconciled), Status: metav1.ConditionFalse,
			Reason: string(reason), Message: "it was refused", ObservedGeneration: generation,
		}}
	}
	same := spec.Fingerprint()
	attempted := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		release  Release
		reported []metav1.Condition
		want     string
		later    time.Duration
	}{
		"refused some time ago":          {Release{Wanted: spec, State: state("failed", same)}, reported(v1.ReasonRefused, 2), "it was refused", RefusedRetryInterval - 1},
		"refused, but that is long ago":  {Release{Wanted: spec, State: state("failed", same)}, reported(v1.ReasonRefused, 2), "", RefusedRetryInterval},
		"refused before":                 {Release{Wanted: spec, State: state("failed", same)}, reported(v1.ReasonRefused, 2), "it was refused", 0},
		"the record is not final yet":    {Release{Wanted: spec, State: state("pending-upgrade", same)}, reported(v1.ReasonRefused, 2), "it was refused", 0},
		"nothing told":                   {Release{Wanted: spec, State: state("failed", same)}, nil, "", 0},
		"failed for another reason":      {Release{Wanted: spec, State: state("failed", same)}, reported(v1.ReasonReconcileError, 2), "", 0},
		"the spec has changed":           {Release{Wanted: spec, State: state("failed", same)}, reported(v1.ReasonRefused, 1), "", 0},
		"the chart has changed":          {Release{Wanted: spec, State: state("failed", "other")}, reported(v1.ReasonRefused, 2), "", 0},
		"another release was refused":    {Release{Wanted: spec, State: state("deployed", same)}, reported(v1.ReasonRefused, 2), "", 0},
		"what it should be is not known": {Release{State: state("failed", same)}, reported(v1.ReasonRefused, 2), "", 0},
		"it cannot be rendered by now":   {Release{Wanted: spec, State: state("failed", same), Err: errors.New("no")}, reported(v1.ReasonRefused, 2), "no", 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.release.Attempted = attempted
			c.release.SkipRefused(c.reported, 2, attempted.Add(c.later))
			if got := fmt.Sprint(c.release.Err); got != c.want && (c.release.Err != nil || c.want != "") {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if c.want == "it was refused" {
				if reason := Because(c.release.Err); v1.Reason(reason.Code) != v1.ReasonRefused || reason.Message != c.want {
					t.Errorf("the reason became %v", reason)
				}
			}
		})
	}
}

func TestWhatIsRefused(t *testing.T) {
	kind := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	answer := func(code int32, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: message}}
	}
	cases := map[string]struct {
		err  error
		want v1.Reason
	}{
		"invalid":           {apierrors.NewInvalid(kind, "istiod", nil), v1.ReasonRefused},
		"of another type":   {answer(500, "failed to create typed patch object (a/b; apps/v1, Kind=Deployment): .spec.replicas: expected numeric"), v1.ReasonRefused},
		"not convertible":   {answer(500, "failed to convert new object (a/b; apps/v1, Kind=Deployment) to proper version"), v1.ReasonRefused},
		"something broke":   {answer(500, "etcdserver: no leader"), v1.ReasonReconcileError},
		"an internal error": {apierrors.NewInternalError(errors.New("failed to create typed patch object")), v1.ReasonReconcileError},
		"forbidden":         {apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", nil), v1.ReasonReconcileError},
		"no answer":         {errors.New("failed to create typed patch object"), v1.ReasonReconcileError},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			wrapped := fmt.Errorf("install release mesh/a: %w", c.err)
			reason := Because(wrapped)
			if v1.Reason(reason.Code) != c.want {
				t.Errorf("got %v, want %s", reason, c.want)
			}
			if says := strings.HasSuffix(reason.Message, refusalRemedy); says != (c.want == v1.ReasonRefused) {
				t.Errorf("says what comes next: %t: %s", says, reason.Message)
			}
			// An error is tried again at once, and again.
			if _, err := Result(passage.Plan{}, wrapped, time.Second); (err == nil) != (c.want == v1.ReasonRefused) {
				t.Errorf("the result is %v", err)
			}
		})
	}
}

func TestWhenToLookAgain(t *testing.T) {
	const soon = 10 * time.Second
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "istiod", nil)
	plan := func(action passage.Action, reason v1.Reason) passage.Plan {
		return passage.Plan{Steps: []passage.Step{{Action: action, Reason: passage.Because(reason, "")}}}
	}
	cases := map[string]struct {
		plan    passage.Plan
		failure error
		after   time.Duration
		err     bool
	}{
		"all is well":                 {plan: plan(ActionRun, v1.ReasonIstiodReady)},
		"an installation was refused": {plan(ActionInstall, v1.ReasonNotInstalled), invalid, soon, false},
		"it was refused before":       {plan(ActionInstall, v1.ReasonRefused), nil, soon, false},
		"a restoration was refused":   {plan(ActionRestore, v1.ReasonObjectEdited), invalid, RefusedRetryInterval, false},
		"there are no such charts":    {plan(ActionInstall, v1.ReasonVersionNotFound), nil, soon, false},
		"it cannot be rendered":       {plan: plan(ActionInstall, v1.ReasonTemplateError)},
		"it cannot be rendered now":   {plan(ActionInstall, v1.ReasonNotInstalled), &release.RenderError{Err: errors.New("no")}, 0, true},
		"others have it":              {plan(ActionInstall, v1.ReasonNotInstalled), &release.OwnedByOthersError{}, ownershipRetryInterval, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Result(c.plan, c.failure, soon)
			if got.RequeueAfter != c.after || (err != nil) != c.err {
				t.Errorf("after %s, %v", got.RequeueAfter, err)
			}
			if err != nil && !errors.Is(err, reconcile.TerminalError(nil)) {
				t.Errorf("it would be tried again: %v", err)
			}
		})
	}
}
