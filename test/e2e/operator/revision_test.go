package operator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness/wait"
)

func getRevision(t testing.TB, c client.Client, name string) *v1.IstioRevision {
	t.Helper()
	var revision v1.IstioRevision
	if err := c.Get(t.Context(), client.ObjectKey{Name: name}, &revision); err != nil {
		t.Fatal(err)
	}
	return &revision
}

func notInstalled(revision string) string {
	return fmt.Sprintf("IstioRevision %s: namespace istio-system does not exist; create it, and the installation goes on", revision)
}

func TestRevisionBased(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	name := uniqueName(t)
	istio := revisionBased(makeIstio(name, "v1.24.0"))
	istio.Spec.Values = v1.Values{"pilot": map[string]any{"replicaCount": int64(2)}, "list": []any{"a", "b"}}
	create(t, w, istio)

	first := name + "-v1-24-0"
	istio = reported(t, w, name, "NamespaceNotFound")
	says(t, istio, v1.ConditionReconciled, "True", "Reconciled", "IstioRevision "+first+" is as the spec asks")
	says(t, istio, v1.ConditionReady, "False", "NamespaceNotFound", notInstalled(first))
	if istio.Status.ActiveRevisionName != first {
		t.Errorf("active revision is %q", istio.Status.ActiveRevisionName)
	}
	revision := getRevision(t, w, first)
	want := v1.IstioRevisionSpec{Version: "v1.24.0", Namespace: "istio-system", Values: istio.Spec.Values}
	if diff := cmp.Diff(want, revision.Spec); diff != "" {
		t.Error(diff)
	}
	if !metav1.IsControlledBy(revision, istio) {
		t.Errorf("the revision belongs to %+v", revision.OwnerReferences)
	}
	if owner := revision.ManagedFields[0]; owner.Manager != "fairlead/revision" || owner.Operation != "Apply" {
		t.Errorf("the revision was written by %s (%s)", owner.Manager, owner.Operation)
	}
	wait.Until(t, func(ctx context.Context) error { return eventReported(ctx, w, istio, "RevisionCreated") })

	change(t, w, name, func(istio *v1.Istio) { istio.Spec.Version = "v1.26.0" })
	istio = reported(t, w, name, "NamespaceNotFound")
	if diff := cmp.Diff(&v1.RevisionSummary{Total: 2}, istio.Status.Revisions); diff != "" {
		t.Error(diff)
	}
	if istio.Status.ActiveRevisionName != name+"-v1-26-0" {
		t.Errorf("active revision is %q", istio.Status.ActiveRevisionName)
	}
	if again := getRevision(t, w, first); again.Generation != revision.Generation {
		t.Error("the spec of the old revision was written to")
	}
}

func eventReported(ctx context.Context, c client.Reader, istio *v1.Istio, reason string) error {
	var events eventsv1.EventList
	if err := c.List(ctx, &events, client.InNamespace("default")); err != nil {
		return err
	}
	for _, e := range events.Items {
		if e.Regarding.UID == istio.UID && e.Reason == reason && e.ReportingController == "fairlead.dev/revision" {
			return nil
		}
	}
	return fmt.Errorf("no event %s among %d", reason, len(events.Items))
}

func TestInPlace(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	name := uniqueName(t)
	istio := makeIstio(name, "v1.24.0")
	istio.Spec.Values = v1.Values{"pilot": map[string]any{"replicaCount": int64(2)}, "going": "away"}
	create(t, w, istio)
	reported(t, w, name, "NamespaceNotFound")

	t.Log("somebody adds a value of their own to the revision")
	edit(t, w, getRevision(t, w, name), "somebody", func(r *v1.IstioRevision) { r.Spec.Values["theirs"] = "kept" })
	reported(t, w, name, "NamespaceNotFound")
	if got := fairlead(t, "plan", "istio", name, "--kubeconfig", w.Kubeconfig()); got.code != 0 {
		t.Errorf("a value that somebody else added is planned away: %+v", got)
	}

	change(t, w, name, func(istio *v1.Istio) {
		istio.Spec.Version = "v1.26.0"
		delete(istio.Spec.Values, "going")
	})
	istio = reported(t, w, name, "NamespaceNotFound")
	want := v1.IstioRevisionSpec{
		Version:   "v1.26.0",
		Namespace: "istio-system",
		Values:    v1.Values{"pilot": map[string]any{"replicaCount": int64(2)}, "theirs": "kept"},
	}
	if diff := cmp.Diff(want, getRevision(t, w, name).Spec); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&v1.RevisionSummary{Total: 1}, istio.Status.Revisions); diff != "" {
		t.Error(diff)
	}

	t.Log("somebody overwrites what the Istio asks for")
	edit(t, w, getRevision(t, w, name), "somebody", func(r *v1.IstioRevision) { r.Spec.Version = "v1.20.0" })
	wait.Until(t, func(context.Context) error {
		if got := getRevision(t, w, name).Spec.Version; got != "v1.26.0" {
			return fmt.Errorf("the revision is at %s", got)
		}
		return nil
	})
}

func TestUnresolvableVersion(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	name := uniqueName(t)
	create(t, w, makeIstio(name, "v1.25-latest"))

	istio := reported(t, w, name, "VersionNotFound")
	says(t, istio, v1.ConditionReconciled, "False", "VersionNotFound",
		"spec.version v1.25-latest asks for the newest stable patch of v1.25, and there is none; "+
			"set spec.version to one that exists, of which the nearest are v1.26.0, v1.24.0, v1.31.1, v1.31.0")
	if got := fairlead(t, "status", "istio", name, "--kubeconfig", w.Kubeconfig()); got.code != 1 {
		t.Errorf("status: %+v", got)
	}

	change(t, w, name, func(istio *v1.Istio) { istio.Spec.Version = "v1.31-latest" })
	reported(t, w, name, "NamespaceNotFound")
	if got := getRevision(t, w, name).Spec.Version; got != "v1.31.1" {
		t.Errorf("the newest patch is %s", got)
	}
}

func TestNameConflict(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	name := uniqueName(t)
	blocker := create(t, w, &v1.IstioRevision{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1.IstioRevisionSpec{Version: "v1.23.0"},
	})
	create(t, w, makeIstio(name, "v1.24.0"))
	reported(t, w, name, "NameAlreadyExists")
	if got := getRevision(t, w, name); got.Generation != blocker.Generation || len(got.OwnerReferences) > 0 {
		t.Error("a revision that is not ours was written to")
	}

	t.Log("the blocker goes")
	if err := w.Delete(t.Context(), blocker); err != nil {
		t.Fatal(err)
	}
	reported(t, w, name, "NamespaceNotFound")
}

// A policy of the cluster is the API server's word, which nobody can know beforehand.
func TestRefusedByTheServer(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	name := uniqueName(t)
	refuseRevisions(t, w, name)
	create(t, w, makeIstio(name, "v1.24.0"))

	var istio v1.Istio
	wait.Until(t, func(ctx context.Context) error {
		return isReported(ctx, w, name, "Refused", &istio)
	})
	condition := meta.FindStatusCondition(istio.Status.Conditions, string(v1.ConditionReconciled))
	for _, part := range []string{"IstioRevision " + name, "not in this cluster", "retried every 5 minutes"} {
		if !strings.Contains(condition.Message, part) {
			t.Errorf("%q is not in %q", part, condition.Message)
		}
	}
	if strings.Contains(condition.Message, "terminal error") {
		t.Errorf("words of the machinery: %q", condition.Message)
	}
	if got := fairlead(t, "status", "istio", name, "--kubeconfig", w.Kubeconfig()); got.code != 1 {
		t.Errorf("status: %+v", got)
	}
}

// refuseRevisions lets the API server refuse one IstioRevision as invalid.
func refuseRevisions(t testing.TB, c client.Client, name string) {
	t.Helper()
	create(t, c, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
					Rule: admissionv1.Rule{
						APIGroups: []string{v1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"istiorevisions"},
					},
				},
			}}},
			Validations: []admissionv1.Validation{{
				Expression: fmt.Sprintf("object.metadata.name != %q", name),
				Message:    "not in this cluster",
			}},
		},
	})
	create(t, c, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	})
	// A policy takes a moment to be in force.
	wait.Until(t, func(ctx context.Context) error {
		probe := &v1.IstioRevision{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.IstioRevisionSpec{Version: "v1.24.0", Namespace: "istio-system"}}
		err := c.Create(ctx, probe, client.DryRunAll)
		if !apierrors.IsInvalid(err) {
			return fmt.Errorf("the policy is not in force: %v", err)
		}
		return nil
	})
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	name := uniqueName(t)
	istio := makeIstio(name, "v1.24.0")
	istio.Annotations = map[string]string{"fairlead.dev/paused": "true"}
	create(t, w, istio)

	istio = reported(t, w, name, "Paused")
	says(t, istio, v1.ConditionReconciled, "False", "Paused",
		"paused by annotation fairlead.dev/paused; resume with `fairlead resume istio "+name+"`; "+
			"pending: create IstioRevision "+name+": Istio "+name+" asks for v1.24.0")
	if err := w.Get(t.Context(), client.ObjectKey{Name: name}, &v1.IstioRevision{}); !apierrors.IsNotFound(err) {
		t.Errorf("a paused Istio has a revision: %v", err)
	}

	kubeconfig := w.Kubeconfig()
	if got := fairlead(t, "resume", "istio", name, "--kubeconfig", kubeconfig); got.code != 0 ||
		got.stdout != "istio.sailoperator.io/"+name+" resumed\n" {
		t.Errorf("resume: %+v", got)
	}
	reported(t, w, name, "NamespaceNotFound")

	for _, want := range []string{"paused", "is paused already"} {
		if got := fairlead(t, "pause", "istio", name, "--kubeconfig", kubeconfig); got.code != 0 ||
			got.stdout != "istio.sailoperator.io/"+name+" "+want+"\n" {
			t.Errorf("pause: %+v", got)
		}
	}
	wait.Until(t, func(ctx context.Context) error {
		var istio v1.Istio
		if err := w.Get(ctx, client.ObjectKey{Name: name}, &istio); err != nil {
			return err
		}
		for _, c := range istio.Status.Conditions {
			if c.Type == "Reconciled" && c.Reason == "Paused" && c.Status == "True" {
				return nil
			}
		}
		return fmt.Errorf("%+v", istio.Status.Conditions)
	})
}

func TestDeletion(t *testing.T) {
	// The garbage collector takes half a minute to hear of a new kind.
	t.Parallel()
	w := theWorld(t)
	name := uniqueName(t)
	istio := create(t, w, makeIstio(name, "v1.24.0"))
	reported(t, w, name, "NamespaceNotFound")

	t.Log("a revision that somebody deletes comes back")
	gone := getRevision(t, w, name)
	if err := w.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, func(ctx context.Context) error {
		var revision v1.IstioRevision
		if err := w.Get(ctx, client.ObjectKey{Name: name}, &revision); err != nil {
			return err
		}
		if revision.UID == gone.UID {
			return errors.New("it has not gone")
		}
		return nil
	})

	t.Log("with its Istio, it goes for good")
	if err := w.Delete(t.Context(), istio); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, func(ctx context.Context) error {
		err := w.Get(ctx, client.ObjectKey{Name: name}, &v1.IstioRevision{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the revision is still there: %v", err)
		}
		return nil
	})
}
