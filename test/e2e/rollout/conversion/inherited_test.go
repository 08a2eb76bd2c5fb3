package conversion_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/api/materialize/v1alpha1"
	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/test/harness/environmentd"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// What people wrote into requestRollout to have a rollout, before Fairlead came.
const (
	firstRequest  = "5f1d1e6e-7b1c-4c70-9a0a-0d9b3ad52d6f"
	secondRequest = "0b8ee1f4-52a5-4f7e-8f05-3c0d6a6f7e21"
	thirdRequest  = "f3b1c2d4-9c8e-4d57-b7a6-1e2f3a4b5c6d"
)

// reportedBefore is what the other operator said of every environment.
const reportedBefore = "told by another operator"

// inheritedGeneration is the label by which the other operator told generations apart.
const inheritedGeneration = "environmentd.example.org/generation"

// legacy is an environment as another operator has left it.
type legacy struct {
	// manifest as it was last applied, and how.
	manifest manifest
	apply    way
	// active is the generation that served; images are those of all generations there were.
	active int64
	images map[int64]string
	// completed is the request that was last rolled out, and reason how far the other operator was.
	completed string
	reason    v1alpha2.Reason
	// manner is that of the generation that was to serve next, and asked whether it was asked to.
	manner environmentd.Manner
	asked  bool
	// editedBefore is applied when the other operator has gone, and editedEarly when Fairlead has come, and has not stored
	// the object anew yet.
	editedBefore, editedEarly *manifest
}

// atRest is one with nothing left to do.
func atRest(apply way) legacy {
	return legacy{
		manifest: written(older).withRole().with("requestRollout", firstRequest), apply: apply,
		active: 1, images: map[int64]string{1: "v1"}, completed: firstRequest, reason: v1alpha2.ReasonApplied,
	}
}

// midRollout is one that was about to serve the image v2 as its second generation.
func midRollout(reason v1alpha2.Reason, manner environmentd.Manner) legacy {
	l := atRest(clientSide)
	l.manifest = l.manifest.image("v2").with("requestRollout", secondRequest)
	l.images, l.reason, l.manner = map[int64]string{1: "v1", 2: "v2"}, reason, manner
	return l
}

// firstRollout is one that never served.
func firstRollout(reason v1alpha2.Reason, manner environmentd.Manner) legacy {
	l := atRest(clientSide)
	l.active, l.completed, l.reason, l.manner = 0, string(v1alpha2.NilUUID), reason, manner
	return l
}

// inheritedAs finds the environment that a test has asked for among the legacies.
func (w *world) inheritedAs(t testing.TB, what string) *environment {
	t.Helper()
	e := w.inherited[what]
	if e == nil {
		t.Fatalf("nobody has left an environment for %q", what)
	}
	return e
}

// inherit plays the other operator: it makes all legacies, and leaves when all of their pods run.
func (w *world) inherit(ctx context.Context, all map[string]legacy) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for what, l := range all {
		e := &environment{world: w, namespace: fmt.Sprintf("inherited-%02d", len(w.inherited))}
		w.inherited[what] = e
		group.Go(func() error {
			if err := l.leave(ctx, e); err != nil {
				return fmt.Errorf("leave behind an environment for %q: %w", what, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (l legacy) leave(ctx context.Context, e *environment) error {
	if err := e.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.namespace}}); err != nil {
		return err
	}
	if err := l.apply(ctx, e, l.manifest); err != nil {
		return err
	}
	m := &v1alpha1.Materialize{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "mz"}}
	// What nobody had asked for was chosen by the other operator, and kept in the spec.
	chosen := []byte(`{"spec":{"environmentId":"` + thirdRequest + `"}}`)
	if err := e.Patch(ctx, m, client.RawPatch(types.MergePatchType, chosen), client.FieldOwner("another-operator")); err != nil {
		return err
	}
	m.Status = l.status(m)
	if err := e.Status().Update(ctx, m, client.FieldOwner("another-operator")); err != nil {
		return err
	}
	for _, object := range l.objects(m) {
		if err := e.Create(ctx, object, client.FieldOwner("another-operator")); err != nil {
			return err
		}
	}
	next := e.daemon(l.active + 1)
	next.Behave(l.manner)
	if l.editedBefore != nil {
		if err := l.apply(ctx, e, *l.editedBefore); err != nil {
			return err
		}
	}
	if l.asked {
		next.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/leader/promote", http.NoBody))
	}
	return wait.Try(ctx, func(ctx context.Context) (err error) {
		if e.before, err = e.running(ctx); err == nil && len(e.before) != 2*len(l.images) {
			err = fmt.Errorf("of %d generations, %v run", len(l.images), e.before)
		}
		return err
	})
}

func (l legacy) status(m *v1alpha1.Materialize) v1alpha1.MaterializeStatus {
	var status v1alpha1.MaterializeStatus
	status.ResourceID = "a1b2c3d4e5"
	status.ActiveGeneration = l.active
	status.LastCompletedRolloutRequest = v1alpha2.UUID(l.completed)
	status.ResourcesHash = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
	if l.active > 0 {
		status.LastCompletedRolloutEnvironmentdImageRef = imageOf(l.images[l.active])
	}
	c := metav1.Condition{
		Type: v1alpha2.ConditionUpToDate, Status: metav1.ConditionUnknown, Reason: string(l.reason), Message: reportedBefore,
		ObservedGeneration: m.Generation, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour)),
	}
	if l.reason == v1alpha2.ReasonApplied {
		c.Status = metav1.ConditionTrue
	}
	status.Conditions = []metav1.Condition{c}
	return status
}

// objects are all that ran, labelled in the other operator's way.
func (l legacy) objects(m *v1alpha1.Materialize) []client.Object {
	prefix := "mz" + m.Status.ResourceID + "-"
	metadata := func(name string) metav1.ObjectMeta {
		owner := metav1.NewControllerRef(m, v1alpha1.GroupVersion.WithKind(v1alpha1.MaterializeKind))
		return metav1.ObjectMeta{Namespace: m.Namespace, Name: prefix + name, OwnerReferences: []metav1.OwnerReference{*owner}}
	}
	pods := func(labels map[string]string, image string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: labels["app"], Image: image}}},
		}
	}
	ofGeneration := func(g int64) map[string]string {
		return map[string]string{"app": "environmentd", inheritedGeneration: strconv.FormatInt(g, 10)}
	}
	var all []client.Object
	for g, tag := range l.images {
		name := "environmentd-" + strconv.FormatInt(g, 10)
		all = append(all, &appsv1.StatefulSet{ObjectMeta: metadata(name), Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](1), ServiceName: prefix + name,
			Selector: &metav1.LabelSelector{MatchLabels: ofGeneration(g)}, Template: pods(ofGeneration(g), imageOf(tag)),
		}})
		for _, name := range []string{name, "persist-pubsub-" + strconv.FormatInt(g, 10)} {
			all = append(all, &corev1.Service{ObjectMeta: metadata(name), Spec: corev1.ServiceSpec{
				ClusterIP: corev1.ClusterIPNone, Selector: ofGeneration(g), Ports: []corev1.ServicePort{{Name: "internal-http", Port: 6878}},
			}})
		}
	}
	if l.active > 0 {
		for _, app := range []string{"balancerd", "console"} {
			// No selector of a Deployment ever changes, so this one stays.
			labels := map[string]string{"app": app, "example.org/environment": m.Name}
			all = append(all, &appsv1.Deployment{ObjectMeta: metadata(app), Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: pods(labels, "materialize/"+app+":v1"),
			}})
		}
		all = append(all, &corev1.Service{ObjectMeta: metadata("environmentd"), Spec: corev1.ServiceSpec{
			Selector: ofGeneration(l.active), Ports: []corev1.ServicePort{{Name: "sql", Port: 6875}, {Name: "http", Port: 6876}},
		}})
	}
	return all
}

// legacies are all that the tests ask for, but for those of the stories.
func legacies() map[string]legacy {
	all := map[string]legacy{}
	for name, apply := range ways {
		all["never by accident, applied "+name] = atRest(apply)
	}
	for _, some := range []map[string]legacy{upgradeLegacies(), midRolloutLegacies(), annotationLegacies(), editedLegacies()} {
		maps.Copy(all, some)
	}
	return all
}
