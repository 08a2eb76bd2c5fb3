package adoption_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// holds is an error unless a member has this value.
func (s *stage) holds(t testing.TB, member, value string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "it"}}
	s.until(t, s.members[member], secret, func() error {
		if got := string(secret.Data["password"]); got != value {
			return fmt.Errorf("%s has %q, and not %q", member, got, value)
		}
		return nil
	})
}

// hides fails if the Works of a Secret, or its binding, say anything of these values.
func (s *stage) hides(t testing.TB, values ...string) {
	t.Helper()
	var texts []string
	for _, member := range []string{member1, member2} {
		w, err := s.work(t.Context(), member, "it-secret")
		if err != nil {
			t.Fatal(err)
		}
		// As kubectl get -o yaml shows it, with the fields that it hides.
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(workv1alpha1.GroupVersion.WithKind("Work"))
		if err := s.hub.Get(t.Context(), client.ObjectKeyFromObject(w), object); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	b, err := json.Marshal(s.says(t, "it-secret", applied))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range append(texts, string(b)) {
		for _, value := range values {
			if strings.Contains(text, value) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(value))) {
				t.Errorf("%s is in %s", value, text)
			}
		}
	}
}

// The values of a Secret are in Secrets only. They reach the clusters, are kept there and follow the template nevertheless.
func TestSecretValuesAreInNoWork(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const first, second = "correct-horse", "battery-staple"
	template := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "it"}, Data: map[string][]byte{"password": []byte(first)}}
	s.create(t, s.hub, template, policy("v1", "Secret", everywhere))
	s.says(t, "it-secret", applied)
	s.holds(t, member1, first)
	s.hides(t, first)

	t.Run("drift is reverted", func(t *testing.T) {
		live := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "it"}}
		s.change(t, s.members[member1], live, func() { live.Data["password"] = []byte("drift") })
		s.holds(t, member1, first)
	})
	t.Run("a change goes to the clusters", func(t *testing.T) {
		s.change(t, s.hub, template, func() { template.Data["password"] = []byte(second) })
		for _, member := range []string{member1, member2} {
			s.holds(t, member, second)
		}
		s.says(t, "it-secret", applied)
		s.hides(t, first, second)
	})
	t.Run("the plan has no changes, and shows no values", func(t *testing.T) {
		// A Work knows only by its status that the cluster has its object.
		for _, member := range []string{member1, member2} {
			s.processed(t, member, "it-secret", "AppliedSuccessful")
		}
		if r := s.enter(t, 0, "plan pp everything -n NS -o json"); strings.Contains(r.Stdout, second) {
			t.Errorf("the plan has the value: %s", r.Stdout)
		}
	})
	t.Run("a Work of an earlier version is rewritten", func(t *testing.T) {
		before := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "it"}}
		s.read(t, s.members[member1], before)
		w, err := s.work(t.Context(), member1, "it-secret")
		if err != nil {
			t.Fatal(err)
		}
		manifest := &unstructured.Unstructured{}
		if err := manifest.UnmarshalJSON(w.Spec.Workload.Manifests[0].Raw); err != nil {
			t.Fatal(err)
		}
		manifest.Object["data"] = map[string]any{"password": base64.StdEncoding.EncodeToString([]byte(second))}
		annotations := manifest.GetAnnotations()
		delete(annotations, "fairlead.dev/content")
		manifest.SetAnnotations(annotations)
		patch := client.MergeFrom(w.DeepCopy())
		if w.Spec.Workload.Manifests[0].Raw, err = manifest.MarshalJSON(); err != nil {
			t.Fatal(err)
		}
		if err := s.hub.Patch(t.Context(), w, patch); err != nil {
			t.Fatal(err)
		}
		generation := w.Generation
		wait.Until(t, func(ctx context.Context) error {
			w, err := s.work(ctx, member1, "it-secret")
			if err != nil || w.Generation == generation {
				return fmt.Errorf("the Work has not been rewritten: %w", err)
			}
			return saying(w.Status.Conditions, workv1alpha1.ConditionApplied, w.Generation, "AppliedSuccessful", nil)
		})
		s.says(t, "it-secret", applied)
		s.hides(t, second)
		after := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "it"}}
		if s.read(t, s.members[member1], after); after.ResourceVersion != before.ResourceVersion {
			t.Error("the object in the cluster is written again")
		}
	})
}
