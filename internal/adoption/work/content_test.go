package work

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// secretStage is a hub with the Secret shop/it, and its Work for a cluster that does not have it.
func secretStage(t *testing.T, change func(*unstructured.Unstructured)) *stage {
	t.Helper()
	template := adoptiontest.Object(t, "Secret v1\ndata: {password: aHVudGVyMg==}")
	change(template)
	work := workFor(t, false)
	work.Annotations = map[string]string{model.AnnotationBinding: "shop/it-secret"}
	work.Labels = map[string]string{model.LabelBinding: "b"}
	setManifest(t, work, manifest.WithoutContent(template))
	s := newStage(t, work, nil)
	b := model.NewBinding(client.ObjectKey{Namespace: "shop", Name: "it-secret"})
	b.SetUID("b")
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "west"}}
	model.Claim(b, model.PolicyKey{Namespace: "shop", Name: "p"})
	for _, o := range []client.Object{template, b.Object} {
		if err := s.hub.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func setManifest(t *testing.T, work *workv1alpha1.Work, object *unstructured.Unstructured) {
	t.Helper()
	raw, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
}

// reconcileWork gives the condition Applied, nil if there is none.
func (s *stage) reconcileWork(t *testing.T) *metav1.Condition {
	t.Helper()
	s.west.Writes = nil
	s.hub.Exists(t, s.work)
	o, err := s.reconciler.observeHub(t.Context(), s.work, "west", true)
	if err != nil {
		t.Fatal(err)
	}
	var status *workv1alpha1.WorkStatus
	if hold := Hold(o); hold != nil {
		status = HeldStatus(o, *hold, now)
	} else {
		status = s.applyWork(t, o)
	}
	if status != nil {
		if err := s.reconciler.writeStatus(t.Context(), s.work, *status); err != nil {
			t.Fatal(err)
		}
	}
	s.hub.Exists(t, s.work)
	return meta.FindStatusCondition(s.work.Status.Conditions, workv1alpha1.ConditionApplied)
}

// applyWork is reconcileActive without a watch, for which there is no cluster.
func (s *stage) applyWork(t *testing.T, o Observed) *workv1alpha1.WorkStatus {
	t.Helper()
	object := Object{}
	var err error
	if object.Manifest, err = o.manifest(0); err != nil {
		t.Fatal(err)
	}
	if err := object.Observe(t.Context(), s.member); err != nil {
		t.Fatal(err)
	}
	step := Decide(o, object)
	if object.Live, err = s.reconciler.applyStep(t.Context(), s.member, s.work, object, step); err != nil {
		t.Fatal(err)
	}
	status := AppliedStatus(s.work, "west", []workv1alpha1.ManifestStatus{*StepStatus(s.work, object, step.Action)}, now)
	return &status
}

func (s *stage) password(t *testing.T, where *adoptiontest.API) string {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "it"}}
	where.Exists(t, secret)
	return string(secret.Data["password"])
}

func setPassword(t *testing.T, where *adoptiontest.API, value string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "it"}}
	where.Exists(t, secret)
	secret.Data["password"] = []byte(value)
	if err := where.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

// The member gets the values from the template, drift is reverted, and a Work that is rewritten without the values writes nothing.
func TestSecretIsWrittenFromItsTemplate(t *testing.T) {
	s := secretStage(t, func(*unstructured.Unstructured) {})
	if applied := s.reconcileWork(t); applied == nil || applied.Status != metav1.ConditionTrue || s.password(t, s.west) != "hunter2" {
		t.Fatalf("%v, %q", applied, s.password(t, s.west))
	}
	if s.reconcileWork(t); len(s.west.Writes) > 0 {
		t.Errorf("%v is written again", s.west.Writes)
	}
	setPassword(t, s.west, "drift")
	if s.reconcileWork(t); s.password(t, s.west) != "hunter2" {
		t.Errorf("drift stays: %v", s.west.Writes)
	}
	t.Run("by an earlier version, with its values", func(t *testing.T) {
		whole := adoptiontest.Object(t, "Secret v1\ndata: {password: aHVudGVyMg==}")
		for _, object := range []*unstructured.Unstructured{whole, manifest.WithoutContent(whole)} {
			setManifest(t, s.work, object)
			if err := s.hub.Update(t.Context(), s.work); err != nil {
				t.Fatal(err)
			}
			if s.reconcileWork(t); len(s.west.Writes) > 0 {
				t.Errorf("%v is written", s.west.Writes)
			}
		}
	})
}

// As long as the Work is for other values than the template has, nothing is written: the binding brings the Work up to date. If no
// policy takes the template, the Work says so.
func TestSecretThatHasChanged(t *testing.T) {
	for name, c := range map[string]struct {
		released, gone bool
		says           string
	}{
		"before its Work":               {false, false, "applied in cluster west"},
		"and is deleted":                {false, true, "applied in cluster west"},
		"while no policy takes it":      {true, false, "Secret shop/it has changed on the hub while no policy takes it"},
		"is deleted without any policy": {true, true, "Secret shop/it has changed on the hub while no policy takes it"},
	} {
		t.Run(name, func(t *testing.T) {
			s := secretStage(t, func(*unstructured.Unstructured) {})
			s.reconcileWork(t)
			setPassword(t, s.hub, "new")
			setPassword(t, s.west, "drift")
			if c.gone {
				if err := s.hub.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "it"}}); err != nil {
					t.Fatal(err)
				}
			}
			if c.released {
				b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "it-secret"}}
				s.hub.Exists(t, b)
				model.Claim(model.AsBinding(b), model.PolicyKey{})
				if err := s.hub.Update(t.Context(), b); err != nil {
					t.Fatal(err)
				}
			}
			applied := s.reconcileWork(t)
			if len(s.west.Writes) > 0 || !strings.HasPrefix(applied.Message, c.says) || (applied.Reason == "TemplateChanged") != c.released {
				t.Errorf("%v, %v", s.west.Writes, applied)
			}
			if !c.gone {
				template := adoptiontest.Object(t, "Secret v1\ndata: {password: bmV3}")
				setManifest(t, s.work, manifest.WithoutContent(template))
				if err := s.hub.Update(t.Context(), s.work); err != nil {
					t.Fatal(err)
				}
				if s.reconcileWork(t); s.password(t, s.west) != "new" {
					t.Errorf("the new values are not written: %v", s.west.Writes)
				}
			}
		})
	}
}

// What belongs to the hub is sent to no cluster, even by a Work that names it.
func TestSecretOfTheHubIsNotWritten(t *testing.T) {
	s := secretStage(t, func(template *unstructured.Unstructured) { template.SetNamespace(model.SecretNamespace) })
	if applied := s.reconcileWork(t); applied != nil || len(s.west.Writes) > 0 {
		t.Errorf("%v, %v", s.west.Writes, applied)
	}
}

// A Work that is being deleted needs no values: the template may be gone.
func TestWorkOfASecretThatIsGoneIsDeleted(t *testing.T) {
	s := secretStage(t, func(*unstructured.Unstructured) {})
	s.reconcileWork(t)
	for _, o := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "it"}},
		&workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "it-secret"}}, s.work,
	} {
		if err := s.hub.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	s.west.Writes = nil
	if _, err := s.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.work)}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.west.Writes, []string{"delete Secret it"}) || s.hub.Exists(t, s.work.DeepCopy()) {
		t.Errorf("%v", s.west.Writes)
	}
}
