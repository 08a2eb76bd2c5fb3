package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// TestForgedBackup: who writes ConfigMaps in a namespace has the operator, which may write Deployments and StatefulSets of all
// namespaces, write none elsewhere: not by what looks like the backup of a generation, of which the StatefulSet is gone.
func TestForgedBackup(t *testing.T) {
	t.Parallel()
	e := theWorld(t).deployed(t)
	victim := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.Namespace(t)}}
	before := e.now(t).Spec
	e.edit(t, image("v2"), strategy(v1alpha2.RolloutManuallyPromote))
	m := e.says(t, v1alpha2.ReasonReadyToPromote)

	backup := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: e.namespace, Name: fmt.Sprintf("mz%s-inherited-1", m.Status.ResourceID),
			Labels: map[string]string{v1alpha2.LabelResourceID: m.Status.ResourceID, v1alpha2.LabelApp: "environmentd", v1alpha2.LabelGeneration: "1"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha2.GroupVersion.String(), Kind: v1alpha2.MaterializeKind, Name: m.Name, UID: m.UID, Controller: ptr.To(true),
			}},
		},
		Data: map[string]string{v1alpha2.RecordStatefulSet: fmt.Sprintf(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": %q, "name": "forged"},
			"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "forged"}}, "template": {"metadata": {"labels": {"app": "forged"}},
			"spec": {"serviceAccountName": "default", "containers": [{"name": "c", "image": "i"}]}}}}`, victim.Name)},
	}
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: e.name(m, 1)}}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: e.name(m, 1)}}
	if err := e.Create(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	for _, object := range []client.Object{record, set} {
		if err := e.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	wait.Until(t, func(ctx context.Context) error {
		err := e.Get(ctx, client.ObjectKeyFromObject(set), set)
		if err == nil {
			return errors.New("the StatefulSet is still there")
		}
		return client.IgnoreNotFound(err)
	})

	// The operator has looked at all that when it has brought the generation back.
	e.edit(t, func(m *v1alpha2.Materialize) { m.Spec = before })
	e.serves(t, 1, "v1")
	var all appsv1.DeploymentList
	if err := e.List(t.Context(), &all, client.InNamespace(victim.Name)); err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		t.Errorf("Deployment %s of another namespace was written", all.Items[i].Name)
	}
}
