package revision_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// What will run counts, not only what runs: a CronJob between its runs and a Deployment without replicas keep the revision
// that their templates name. ReplicaSets that are left of what a Deployment was before do not.
func TestPodTemplatesKeepARevision(t *testing.T) {
	t.Parallel()
	w := theWorld(t)
	name, system, shop := shortName(t), w.namespace(t), w.namespace(t)
	first, second := name+"-v1-24-0", name+"-v1-26-0"
	istio := harness.Create(t, w, revisionBased(name, system, "v1.24.0", 0))
	ready(t, w, istio)
	report := harness.Create(t, w, &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "report"},
		Spec: batchv1.CronJobSpec{Schedule: "0 0 29 2 *", JobTemplate: batchv1.JobTemplateSpec{
			Spec: batchv1.JobSpec{Template: templateNaming(first, corev1.RestartPolicyNever)},
		}},
	})
	cart := harness.Create(t, w, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "cart"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app"}},
			Template: templateNaming(first, corev1.RestartPolicyAlways),
		},
	})
	wait.Until(t, func(ctx context.Context) error { return w.replicaSetNames(ctx, shop, first) })
	users := fmt.Sprintf("2 workloads: CronJob %[1]s/report, Deployment %[1]s/cart", shop)
	w.usedBy(t, first, users)

	t.Log("the next version is ready, and nothing runs on the old one")
	harness.Change(t, w, istio, func(istio *v1.Istio) { istio.Spec.Version = "v1.26.0" })
	until(t, w, istio, func(istio *v1.Istio) error {
		if istio.Status.ActiveRevisionName != second || condition(istio, v1.ConditionReady).Status != metav1.ConditionTrue {
			return fmt.Errorf("%s is not ready", second)
		}
		return nil
	})
	w.usedBy(t, first, users)
	want := []string{"CronJob " + shop + "/report", "Deployment " + shop + "/cart"}
	if got := w.references(t, first); !slices.Equal(got, want) {
		t.Errorf("fairlead status istiorevision lists %q, want %q", got, want)
	}
	kept := "kept while in use by " + users
	if got := w.fairlead(t, "status", "istio", name, "-o", "wide"); !strings.Contains(got.stdout, kept) {
		t.Errorf("fairlead status istio does not tell %q: %+v", kept, got)
	}

	t.Log("the Deployment moves on, and its old ReplicaSet stays")
	harness.Change(t, w, cart, func(d *appsv1.Deployment) { d.Spec.Template.Labels[v1.LabelRevision] = second })
	wait.Until(t, func(ctx context.Context) error { return w.replicaSetNames(ctx, shop, second) })
	if err := w.replicaSetNames(t.Context(), shop, first); err != nil {
		t.Error(err)
	}
	w.usedBy(t, first, fmt.Sprintf("1 workload: CronJob %s/report", shop))
	if err := w.Get(t.Context(), client.ObjectKey{Name: first}, &v1.IstioRevision{}); err != nil {
		t.Error(err)
	}

	t.Log("the CronJob goes, and the revision with it")
	w.delete(t, report)
	wait.Until(t, func(ctx context.Context) error { return w.isGone(ctx, makeRevision(first, "", "")) })
}

// templateNaming is a pod template that names a revision.
func templateNaming(revision string, restart corev1.RestartPolicy) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "app", v1.LabelRevision: revision}},
		Spec:       corev1.PodSpec{RestartPolicy: restart, Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	}
}

// replicaSetNames tells whether there is a ReplicaSet whose pods would name a revision.
func (w *world) replicaSetNames(ctx context.Context, namespace, revision string) error {
	var list appsv1.ReplicaSetList
	if err := w.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{v1.LabelRevision: revision}); err != nil {
		return err
	}
	if len(list.Items) == 0 {
		return fmt.Errorf("no ReplicaSet in %s names %s", namespace, revision)
	}
	return nil
}
