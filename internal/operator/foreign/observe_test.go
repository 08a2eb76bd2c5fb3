package foreign

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// observed is a cluster without Deployments and Leases, in which an Istio was written by a Sail Operator.
type observed struct {
	*Observer
	// failures are the errors of lists, by resource.
	failures map[string]error
}

func observe(t *testing.T, controllers ...runtime.Object) observed {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects := metadatafake.NewSimpleMetadataClient(scheme, &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "sailoperator.io/v1", Kind: "Istio"},
		ObjectMeta: metav1.ObjectMeta{Name: "default", Finalizers: []string{"sailoperator.io/sail-operator"}},
	})
	clients := fake.NewClientset(controllers...)
	clients.PrependReactor("create", "subjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authorizationv1.SubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}, nil
	})
	o := observed{&Observer{
		System: Of("revision"), CRDs: []string{"istios.sailoperator.io"}, Now: func() time.Time { return now }, renewals: map[string]renewal{},
		deployments: clients.AppsV1(), leases: clients.CoordinationV1(), reviews: clients.AuthorizationV1().SubjectAccessReviews(), metadata: objects,
	}, map[string]error{}}
	fail := func(action clienttesting.Action) (bool, runtime.Object, error) {
		err := o.failures[action.GetResource().Resource]
		return err != nil, nil, err
	}
	objects.PrependReactor("*", "*", fail)
	clients.PrependReactor("list", "*", fail)
	return o
}

func resourceOf(name string) schema.GroupResource {
	return schema.GroupResource{Group: "sailoperator.io", Resource: name}
}

// TestUnknownStays: between two looks at everything, what could not be read at the last one is as unknown as it was.
func TestUnknownStays(t *testing.T) {
	o := observe(t)
	o.failures["istios"] = apierrors.NewForbidden(resourceOf("istios"), "", nil)
	o.failures["leases"] = apierrors.NewForbidden(resourceOf("leases"), "", nil)
	full, err := o.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	short, err := o.ObserveControllers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(full.Unknown, short.Unknown); diff != "" || len(full.Unknown) != 2 {
		t.Errorf("unknown are %v: %s", full.Unknown, diff)
	}
}

// TestUnavailable: what a server does not answer now is as it was seen last.
func TestUnavailable(t *testing.T) {
	for name, failure := range map[string]error{
		"an aggregated server is down": apierrors.NewServiceUnavailable("no endpoints"),
		"a timeout":                    apierrors.NewTimeoutError("too slow", 1),
		"no answer":                    context.DeadlineExceeded,
		"too many requests":            apierrors.NewTooManyRequests("later", 1),
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(t)
			before, err := o.Observe(t.Context())
			if err != nil || len(before.Objects) != 1 {
				t.Fatalf("%+v, %v", before, err)
			}
			o.failures["istios"] = failure
			seen, err := o.Observe(t.Context())
			if err != nil || !seen.IsUnavailable() {
				t.Fatalf("%+v, %v", seen, err)
			}
			if diff := cmp.Diff(before.Objects, seen.Objects); diff != "" {
				t.Error(diff)
			}
			delete(o.failures, "istios")
			if seen, err = o.Observe(t.Context()); err != nil || seen.IsUnavailable() {
				t.Errorf("%+v, %v", seen, err)
			}
		})
	}
}

// TestPods: pods that still run, or are terminating, are those of a Deployment that is scaled to 0.
func TestPods(t *testing.T) {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "sail-operator", Name: "sail-operator"},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](0)},
		Status:     appsv1.DeploymentStatus{Replicas: 1, TerminatingReplicas: ptr.To[int32](1)},
	}
	o := observe(t, d)
	seen, err := o.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Deployment{{"sail-operator", "sail-operator", 0, 2}}, seen.Deployments); diff != "" {
		t.Error(diff)
	}
}

// TestImpostors: Deployments under the name of the system cost one answer for each account that they run under, and the next look asks
// again.
func TestImpostors(t *testing.T) {
	var impostors []runtime.Object
	for i := range 200 {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: fmt.Sprintf("impostor-%03d", i)}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Image: Of("revision").Images[0]}}
		d.Spec.Template.Spec.ServiceAccountName = []string{"default", "", "robot"}[i%3]
		impostors = append(impostors, d)
	}
	clients := fake.NewClientset(impostors...)
	asked := map[string]int{}
	clients.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		asked[review.Spec.User]++
		return true, review, nil
	})
	o := observe(t)
	o.deployments, o.reviews = clients.AppsV1(), clients.AuthorizationV1().SubjectAccessReviews()
	for look := range 2 {
		o.images = false
		seen, err := o.ObserveControllers(t.Context())
		if err != nil || len(seen.Deployments) > 0 {
			t.Fatalf("%v, %v", seen.Deployments, err)
		}
		// To update and to patch, the object and its status.
		want := map[string]int{"system:serviceaccount:tenant:default": 4 * (look + 1), "system:serviceaccount:tenant:robot": 4 * (look + 1)}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Errorf("asked (-want +got)\n%s", diff)
		}
	}
}
