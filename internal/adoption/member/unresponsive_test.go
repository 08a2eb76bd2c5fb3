package member

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// unresponsive is the transport to a cluster that accepts connections and answers only what it is asked at some paths. A request
// with a deadline fails at once, as it does when the deadline has passed; one without would wait for ever.
type unresponsive struct {
	base     http.RoundTripper
	answered []string
	asked    []string
	endless  []string
}

func (u *unresponsive) RoundTrip(request *http.Request) (*http.Response, error) {
	u.asked = append(u.asked, request.URL.Path)
	if _, limited := request.Context().Deadline(); !limited {
		u.endless = append(u.endless, request.URL.Path)
		return nil, errors.New("the request waits for ever")
	}
	if slices.Contains(u.answered, request.URL.Path) {
		return u.base.RoundTrip(request)
	}
	return nil, context.DeadlineExceeded
}

func (u *unresponsive) wrap(base http.RoundTripper) http.RoundTripper {
	u.base = base
	return u
}

// stalling is the transport to clusters that accept connections, of which those at some hosts do not answer before they are released.
type stalling struct {
	base     http.RoundTripper
	hosts    []string
	released chan struct{}
}

func (s *stalling) RoundTrip(request *http.Request) (*http.Response, error) {
	if slices.Contains(s.hosts, request.URL.Host) {
		<-s.released
		return nil, errors.New("released")
	}
	return s.base.RoundTrip(request)
}

// However many clusters do not answer, one that does is ready before any of their requests has ended.
func TestStalledClustersHoldUpNoOther(t *testing.T) {
	s := &stalling{released: make(chan struct{})}
	var others []client.Object
	queued := make(chan event.GenericEvent, 32)
	for i := range 20 {
		cluster, secret, namespace := joinedAsWest(fmt.Sprintf("https://stalled-%d", i), nil)
		name := fmt.Sprintf("stalled-%d", i)
		cluster.Name, cluster.Spec.SecretRef.Name, secret.Name, namespace.Name = name, name, name, model.ExecutionNamespace(name)
		others, s.hosts = append(others, cluster, secret, namespace), append(s.hosts, name)
		queued <- event.GenericEvent{Object: cluster}
	}
	o := newOperator(t, nil, others...)
	o.members.WrapTransport = func(base http.RoundTripper) http.RoundTripper {
		return &stalling{base: base, hosts: s.hosts, released: s.released}
	}
	queued <- event.GenericEvent{Object: o.cluster(t)}

	checked := make(chan string, len(s.hosts)+1)
	with := options()
	with.Reconciler = reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		result, err := o.Reconcile(ctx, request)
		checked <- request.Name
		return result, err
	})
	with.SkipNameValidation = ptr.To(true) // for one with that name in another run of the test, which has ended
	c, err := controller.NewUnmanaged("stalled-clusters", with)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Watch(source.Channel(queued, &handler.EnqueueRequestForObject{})); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = c.Start(ctx) })
	select {
	case first := <-checked:
		if first != "west" || !meta.IsStatusConditionTrue(o.cluster(t).Status.Conditions, clusterv1alpha1.ConditionReady) {
			t.Errorf("%s is checked, and west says %v", first, o.cluster(t).Status.Conditions)
		}
	case <-time.After(wait.Deadline()):
		t.Error("it waits for clusters that do not answer")
	}
	cancel()
	close(s.released)
	running.Wait()
}

// Every request that a connection is made with has a deadline, and the Cluster says which was not answered.
func TestConnectToUnresponsiveCluster(t *testing.T) {
	for name, c := range map[string]struct {
		answered []string
		asked    string
	}{
		"nothing":           {nil, "/version"},
		"the version":       {[]string{"/version"}, "/api"},
		"the core versions": {[]string{"/version", "/api"}, "/apis"},
		"the groups":        {[]string{"/version", "/api", "/apis"}, "/apis/"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOperator(t, nil)
			u := &unresponsive{answered: c.answered}
			o.members.WrapTransport = u.wrap
			if result := o.reconcile(t); result.RequeueAfter != checkInterval {
				t.Errorf("checked again after %s", result.RequeueAfter)
			}
			ready := meta.FindStatusCondition(o.cluster(t).Status.Conditions, clusterv1alpha1.ConditionReady)
			if len(u.endless) > 0 || ready == nil || ready.Reason != string(model.ReasonUnreachable) || !strings.Contains(ready.Message, c.asked) || !strings.Contains(ready.Message, "context deadline exceeded") {
				t.Errorf("without a deadline: %v, %v", u.endless, ready)
			}
			if count := len(u.asked) - len(c.answered); count > 1 && c.asked != "/version" {
				t.Errorf("asked after the first request that was not answered: %v", u.asked)
			}
		})
	}
}

// A Cluster that is abandoned, or has no Works left, is removed without a request to its API server.
func TestLeaveUnresponsiveCluster(t *testing.T) {
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-west", Name: "a", Finalizers: []string{model.FinalizerExecution}}}
	for name, c := range map[string]struct {
		works   []client.Object
		abandon bool
		asked   bool
	}{
		"given up":              {[]client.Object{work}, true, false},
		"given up, and empty":   {nil, true, false},
		"empty":                 {nil, false, false},
		"with objects to leave": {[]client.Object{work}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOperator(t, func(cluster *clusterv1alpha1.Cluster, _ *corev1.Secret) {
				if c.abandon {
					metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, model.AnnotationAbandon, "true")
				}
			}, c.works...)
			o.deleteCluster(t)
			u := &unresponsive{}
			o.members.WrapTransport = u.wrap
			result := o.reconcile(t)
			if asked := len(u.asked) > 0; asked != c.asked || len(u.endless) > 0 {
				t.Errorf("asked %v, without a deadline %v", u.asked, u.endless)
			}
			if len(c.works) > 0 {
				if result.RequeueAfter != unjoinInterval || !slices.Contains(o.reconnected, "west") || read(t, o.hub, "karmada-es-west/a", &workv1alpha1.Work{}).DeletionTimestamp == nil {
					t.Errorf("%v, enqueued: %v, or the Work is not deleted", result, o.reconnected)
				}
				// As the controller of Works does with one that is abandoned.
				remove(t, o.hub, work.DeepCopy())
				u.asked = nil
				o.reconcile(t)
			}
			if o.hub.Exists(t, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}) || !c.asked && len(u.asked) > 0 {
				t.Errorf("the Cluster is still there, or was asked: %v", u.asked)
			}
		})
	}
}

// A cluster that lists one autoscaler and not all of them holds up a Work only until the request is late.
func TestAutoscalersOfUnresponsiveCluster(t *testing.T) {
	never := &neverSynced{}
	m := &Client{Name: "west", cache: never, autoscalersListed: true}
	object := adoptiontest.Object(t, "Deployment apps/v1\nspec: {replicas: 2}")
	if _, err := m.IsAutoscaled(t.Context(), object, nil); err == nil || !never.limited {
		t.Errorf("the wait for the cache has a deadline: %t, %v", never.limited, err)
	}
}

// neverSynced is a cache that never receives its first list.
type neverSynced struct {
	cache.Cache
	limited bool
}

func (n *neverSynced) List(ctx context.Context, list client.ObjectList, _ ...client.ListOption) error {
	_, n.limited = ctx.Deadline()
	if _, ok := list.(*autoscalingv2.HorizontalPodAutoscalerList); !ok {
		return errors.New("not a list of autoscalers")
	}
	return context.DeadlineExceeded
}

// A command removes its account from a cluster, and ends if the cluster does not answer.
func TestUnjoinUnresponsiveCluster(t *testing.T) {
	for _, administrator := range []bool{true, false} {
		u := &unresponsive{}
		_, err := deleteRBAC(t.Context(), &rest.Config{Host: "https://west", WrapTransport: u.wrap}, account, administrator)
		if (err != nil) != administrator || len(u.asked) == 0 || len(u.endless) > 0 {
			t.Errorf("administrator %t: asked %v, without a deadline %v, %v", administrator, u.asked, u.endless, err)
		}
	}
}
