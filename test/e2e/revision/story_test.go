package revision_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/faults"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
)

// anchor lets an operator install one.
func (w *world) anchor(t testing.TB) {
	t.Helper()
	namespace, anchor := makeAnchor()
	w.make(t, namespace, anchor)
	w.undisturbed(t, func(ctx context.Context) error { return w.is(ctx, anchor, v1.ConditionReady) })
}

// is tells whether a condition of an object is true, after reading it.
func (w *world) is(ctx context.Context, object client.Object, kind v1.ConditionType) error {
	if err := w.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	if condition(object, kind).Status != metav1.ConditionTrue {
		return fmt.Errorf("%s is not %s: %s", object.GetName(), kind, said(object))
	}
	return nil
}

// story is a control plane and a tag that follows it, in a namespace of the same name.
type story struct {
	*world
	name  string
	istio *v1.Istio
	tag   *v1.IstioRevisionTag
	// next, if set, is the version to go on to when all is there. Then the upgrade begins, and what is there before has
	// to stay.
	next      string
	upgrading atomic.Bool
	before    map[string]types.UID
}

func (w *world) newStory(t testing.TB, version string) *story {
	t.Helper()
	name := cluster.Name(t)
	name = strings.TrimLeft(name[max(0, len(name)-20):], "-")
	s := &story{world: w, name: name, istio: inPlace(name, name, version), tag: makeTag(name+"-tag", v1.IstioKind, name)}
	w.make(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, s.istio, s.tag)
	return s
}

func (s *story) play(t testing.TB) faults.World {
	return faults.World{
		Run:      harness.InProcessOperator(t, v1.PassageRevision),
		Settled:  s.goOn,
		Snapshot: s.snapshot,
		Teardown: func() { s.remove(t) },
	}
}

// goOn takes the story to its end.
func (s *story) goOn(ctx context.Context) error {
	if err := s.settled(ctx); err != nil || s.next == "" || s.upgrading.Load() {
		return err
	}
	var err error
	if s.before, err = s.uids(ctx); err != nil {
		return err
	}
	unchanged := s.istio.DeepCopy()
	s.istio.Spec.Version = s.next
	s.upgrading.Store(true)
	// A patch: an update would conflict with whatever else writes the Istio.
	if err := s.Patch(ctx, s.istio, client.MergeFrom(unchanged)); err != nil {
		s.upgrading.Store(false)
		return err
	}
	return errors.New("the upgrade begins")
}

// settled means that all of it serves, by releases that were carried through.
func (s *story) settled(ctx context.Context) error {
	if err := s.serve(ctx); err != nil {
		return err
	}
	err := errors.Join(
		s.is(ctx, s.tag, v1.ConditionReconciled),
		s.is(ctx, s.istio, v1.ConditionReconciled), s.is(ctx, s.istio, v1.ConditionReady),
	)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(&v1.RevisionSummary{Total: 1, Ready: 1, InUse: 1}, s.istio.Status.Revisions); diff != "" {
		return fmt.Errorf("the Istio counts (-want +got):\n%s", diff)
	}
	releases, err := s.releases(ctx, s.name)
	if err != nil {
		return err
	}
	done := "deployed " + s.istio.Spec.Version
	want := map[string]string{s.name + "-istiod": done, s.name + "-tag-revisiontag": done}
	if !maps.Equal(releases, want) {
		return fmt.Errorf("the releases are %v", releases)
	}
	return nil
}

// releases are the releases in a namespace: what became of the latest attempt, and of which version it was.
func (w *world) releases(ctx context.Context, namespace string) (map[string]string, error) {
	var records corev1.SecretList
	if err := w.List(ctx, &records, client.InNamespace(namespace), client.MatchingLabels{"owner": "helm"}); err != nil {
		return nil, err
	}
	statuses, latest := map[string]string{}, map[string]int{}
	for _, record := range records.Items {
		version, err := strconv.Atoi(record.Labels["version"])
		if err != nil {
			return nil, fmt.Errorf("record %s: %w", record.Name, err)
		}
		if name := record.Labels["name"]; version > latest[name] {
			latest[name], statuses[name] = version, record.Labels["status"]+" "+record.Labels[v1.LabelChartVersion]
		}
	}
	return statuses, nil
}

// installedKinds are what Istio's charts install.
var installedKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "ServiceAccount"},
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Service"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
}

var ownKinds = []schema.GroupVersionKind{
	v1.GroupVersion.WithKind(v1.IstioKind),
	v1.GroupVersion.WithKind(v1.IstioRevisionKind),
	v1.GroupVersion.WithKind(v1.IstioRevisionTagKind),
}

// snapshot is all that there is of the story but Helm's records, of which a crash may leave more.
func (s *story) snapshot(ctx context.Context) (map[string]string, error) {
	if err := s.sameAsBefore(ctx); err != nil {
		return nil, err
	}
	all, err := faults.Dump{
		Kinds: append(slices.Clone(installedKinds), ownKinds...),
		Names: map[string]string{s.name: "STORY"},
		// Given out in turn.
		Scrub: func(object *unstructured.Unstructured) {
			unstructured.RemoveNestedField(object.Object, "spec", "clusterIP")
			unstructured.RemoveNestedField(object.Object, "spec", "clusterIPs")
		},
	}.Snapshot(ctx, s)
	maps.DeleteFunc(all, func(key, _ string) bool { return !strings.Contains(key, "STORY") })
	return all, err
}

func (s *story) sameAsBefore(ctx context.Context) error {
	if s.before == nil {
		return nil
	}
	after, err := s.uids(ctx)
	if err != nil {
		return err
	}
	for key, uid := range s.before {
		if now, ok := after[key]; ok && now != uid {
			return fmt.Errorf("%s was deleted and made anew", key)
		}
	}
	return nil
}

func (s *story) uids(ctx context.Context) (map[string]types.UID, error) {
	uids := map[string]types.UID{}
	for _, kind := range append(slices.Clone(installedKinds), ownKinds...) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := s.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list %s: %w", kind.Kind, err)
		}
		for _, item := range list.Items {
			if strings.Contains(item.Namespace+"/"+item.Name, s.name) {
				uids[kind.Kind+" "+item.Namespace+"/"+item.Name] = item.UID
			}
		}
	}
	return uids, nil
}

// remove takes all away without an operator: what was installed is collected as garbage.
func (s *story) remove(t testing.TB) {
	ctx := context.Background()
	unprotected := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	revision := makeRevision(s.name, s.name, "")
	for _, object := range []client.Object{s.istio, s.tag, revision} {
		err := errors.Join(
			client.IgnoreNotFound(s.Delete(ctx, object)),
			client.IgnoreNotFound(s.Patch(ctx, object, unprotected)),
		)
		if err != nil {
			t.Error(err)
		}
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	if err := s.Delete(ctx, namespace); err != nil {
		t.Error(err)
	}
}
