package upgrade_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// age is how long ago, to the operator, the objects were captured: long enough for pauses between batches to be over.
const age = 2 * time.Hour

// restoration knows what the objects that were captured are now.
type restoration struct {
	// uids are the new ones by the old ones.
	uids map[string]string
}

func read(t testing.TB, file string) captured {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var from captured
	if err := yaml.Unmarshal(text, &from); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return from
}

// restore creates the objects of a file in a cluster, with their status and the managers of their fields.
func (r restoration) restore(t testing.TB, s *site, from captured) {
	t.Helper()
	later := time.Since(from.At) - age
	ranked := slices.Clone(from.Objects)
	slices.SortStableFunc(ranked, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	ofFile := map[string]bool{}
	for _, o := range ranked {
		ofFile[string(o.GetUID())] = true
	}
	podsKnown := false
	for pending := ranked; len(pending) > 0; {
		// Owners first, whose UIDs the others need.
		at := slices.IndexFunc(pending, func(o *unstructured.Unstructured) bool {
			return !slices.ContainsFunc(o.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
				return ofFile[string(owner.UID)] && r.uids[string(owner.UID)] == ""
			})
		})
		if at < 0 {
			t.Fatalf("objects own each other: %v", pending)
		}
		o := pending[at]
		pending = slices.Delete(slices.Clone(pending), at, at+1)
		if o.GetKind() == "ReplicaSet" && !podsKnown {
			awaitPods(t, s, ranked)
			podsKnown = true
		}
		r.uids[string(o.GetUID())] = r.create(t, s, o, later)
	}
	for _, o := range ranked {
		r.complete(t, s, o, later)
	}
}

// rank is the order of creation: ReplicaSets find the pods that are there, and Deployments their ReplicaSets, instead of making new ones.
func rank(o *unstructured.Unstructured) int {
	switch o.GetKind() {
	case "Namespace":
		return 0
	case "Pod":
		return 2
	case "ReplicaSet":
		return 3
	case "Deployment", "StatefulSet":
		return 4
	}
	return 1
}

// awaitPods waits until the controllers of Kubernetes know the pods that were restored: that of ReplicaSets would make new ones. All of
// them read pods from one cache, and one of them says how many pods a PodDisruptionBudget is about.
func awaitPods(t testing.TB, s *site, restored []*unstructured.Unstructured) {
	t.Helper()
	pods := map[string]int32{}
	for _, o := range restored {
		if o.GetKind() == "Pod" {
			pods[o.GetNamespace()]++
		}
	}
	for namespace, count := range pods {
		budget := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "restored-pods"},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(0)), Selector: &metav1.LabelSelector{}},
		}
		if err := s.Create(t.Context(), budget); err != nil {
			t.Fatal(err)
		}
		harness.WaitFor(t, s, budget, func(b *policyv1.PodDisruptionBudget) error {
			if b.Status.ExpectedPods < count {
				return fmt.Errorf("the controllers know %d of %d pods in namespace %s", b.Status.ExpectedPods, count, namespace)
			}
			return nil
		})
		if err := s.Delete(t.Context(), budget); err != nil {
			t.Fatal(err)
		}
	}
}

var timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

// renewed is an object with the UIDs of now, and times that are as long ago as when it was captured, and a while more.
func (r restoration) renewed(t testing.TB, o *unstructured.Unstructured, later time.Duration) *unstructured.Unstructured {
	t.Helper()
	text, err := json.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	renewed := timestamp.ReplaceAllStringFunc(r.withNewUIDs(string(text)), func(stamp string) string {
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil {
			return stamp
		}
		if !strings.Contains(stamp, ".") {
			return at.Add(later).UTC().Format(time.RFC3339)
		}
		return at.Add(later).UTC().Format("2006-01-02T15:04:05.000000Z")
	})
	now := &unstructured.Unstructured{}
	if err := now.UnmarshalJSON([]byte(renewed)); err != nil {
		t.Fatal(err)
	}
	r.renewOriginals(t, now)
	return now
}

// renewOriginals: what was taken over is known by its UID in a compressed text.
func (r restoration) renewOriginals(t testing.TB, o *unstructured.Unstructured) {
	t.Helper()
	data, _, _ := unstructured.NestedStringMap(o.Object, "data")
	if o.GetKind() != "Secret" || o.GetLabels()["fairlead.dev/undo"] != "true" {
		return
	}
	for key, value := range data {
		packed, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			t.Fatal(err)
		}
		unzip, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(unzip)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		zip := gzip.NewWriter(&out)
		_, err = zip.Write([]byte(r.withNewUIDs(string(text))))
		if err := errors.Join(err, zip.Close()); err != nil {
			t.Fatal(err)
		}
		data[key] = base64.StdEncoding.EncodeToString(out.Bytes())
	}
	if err := unstructured.SetNestedStringMap(o.Object, data, "data"); err != nil {
		t.Fatal(err)
	}
}

func (r restoration) withNewUIDs(text string) string {
	var pairs []string
	for before, now := range r.uids {
		pairs = append(pairs, before, now)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// create returns the UID.
func (r restoration) create(t testing.TB, s *site, o *unstructured.Unstructured, later time.Duration) string {
	t.Helper()
	object := r.renewed(t, o, later)
	for _, field := range []string{"uid", "generation", "managedFields"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	if hasGenerations(o) {
		limit, _, _ := unstructured.NestedInt64(o.Object, "spec", "revisionHistoryLimit")
		if err := lacking(object, o.GetGeneration()-1, limit); err != nil {
			t.Fatal(err)
		}
	}
	wait.Until(t, func(ctx context.Context) error {
		err := s.Create(ctx, object)
		if apierrors.IsAlreadyExists(err) {
			// Such as a namespace that the chart has made.
			err = s.Get(ctx, client.ObjectKeyFromObject(object), object)
		}
		if err == nil {
			return nil
		}
		err = fmt.Errorf("create %s %s: %w", o.GetKind(), client.ObjectKeyFromObject(o), err)
		if meta.IsNoMatchError(err) || apierrors.IsForbidden(err) && o.GetKind() == "Pod" {
			return err // Its CRD has just been installed, or its namespace has no ServiceAccount yet.
		}
		return wait.Permanent(err)
	})
	return string(object.GetUID())
}

// complete restores what cannot be created: the generation, the status, what names the UID of the object itself or of a later one, and
// the managers of fields.
func (r restoration) complete(t testing.TB, s *site, o *unstructured.Unstructured, later time.Duration) {
	t.Helper()
	raise(t, s, o)
	want := r.renewed(t, o, later)
	key := client.ObjectKeyFromObject(o)
	live := func(ctx context.Context) (*unstructured.Unstructured, error) {
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(o.GroupVersionKind())
		return now, s.Get(ctx, key, now)
	}
	if status := want.Object["status"]; status != nil {
		wait.Until(t, func(ctx context.Context) error {
			now, err := live(ctx)
			if err != nil {
				return err
			}
			now.Object["status"] = observed(status, o.GetGeneration(), now.GetGeneration())
			return permanently(s.Status().Update(ctx, now))
		})
	}
	wait.Until(t, func(ctx context.Context) error {
		now, err := live(ctx)
		if err != nil {
			return err
		}
		before := now.DeepCopy()
		now.SetAnnotations(want.GetAnnotations())
		if isOurs(o) && want.Object["spec"] != nil {
			now.Object["spec"] = want.Object["spec"]
		}
		if managers := want.GetManagedFields(); len(managers) > 0 {
			now.SetManagedFields(managers)
		}
		if reflect.DeepEqual(before.Object, now.Object) {
			return nil
		}
		return permanently(s.Update(ctx, now))
	})
}

// permanently gives up but for conflicts.
func permanently(err error) error {
	if err != nil && !apierrors.IsConflict(err) {
		return wait.Permanent(err)
	}
	return err
}

// hasGenerations: marks speak of the generation of a workload, so that has to be what it was. Each change of a field that nothing looks
// at makes one more, and the last one leaves the field as it was.
func hasGenerations(o *unstructured.Unstructured) bool {
	return o.GetKind() == "Deployment" || o.GetKind() == "StatefulSet"
}

// lacking has a workload lack so many generations.
func lacking(o *unstructured.Unstructured, generations, limit int64) error {
	return unstructured.SetNestedField(o.Object, limit+generations, "spec", "revisionHistoryLimit")
}

// raise has a workload reach the generation that it had.
func raise(t testing.TB, s *site, o *unstructured.Unstructured) {
	t.Helper()
	if !hasGenerations(o) {
		return
	}
	limit, _, _ := unstructured.NestedInt64(o.Object, "spec", "revisionHistoryLimit")
	wait.Until(t, func(ctx context.Context) error {
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(o.GroupVersionKind())
		if err := s.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
			return err
		}
		missing := o.GetGeneration() - now.GetGeneration()
		if missing <= 0 {
			return nil
		}
		if err := lacking(now, missing-1, limit); err != nil {
			return err
		}
		if err := permanently(s.Update(ctx, now)); err != nil {
			return err
		}
		return fmt.Errorf("%s %s is at generation %d of %d", o.GetKind(), o.GetName(), now.GetGeneration(), o.GetGeneration())
	})
}

// observed gives a status of the old generation the new one, and one of an earlier generation none.
func observed(status any, old, now int64) any {
	switch status := status.(type) {
	case map[string]any:
		for key, value := range status {
			generation, isNumber := value.(int64)
			switch {
			case key != "observedGeneration" || !isNumber:
				status[key] = observed(value, old, now)
			case generation == old:
				status[key] = now
			default:
				status[key] = min(generation, now-1)
			}
		}
	case []any:
		for i := range status {
			status[i] = observed(status[i], old, now)
		}
	}
	return status
}
