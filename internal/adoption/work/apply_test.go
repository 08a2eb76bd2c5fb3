package work

import (
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

var (
	configMaps = schema.GroupResource{Resource: "configmaps"}
	notFound   = apierrors.NewNotFound(configMaps, "it")
	conflict   = apierrors.NewConflict(configMaps, "it", errors.New("changed"))
	forbidden  = apierrors.NewForbidden(configMaps, "it", errors.New("no"))
	invalid    = apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "it", nil)
)

// stage is a hub with the Work of ConfigMap shop/it for cluster west, and that cluster.
type stage struct {
	hub, west  *adoptiontest.API
	member     *member.Client
	work       *workv1alpha1.Work
	reconciler *reconciler
	clock      time.Time
	// rechecked are the clusters whose Works have all been compared once more.
	rechecked []string
}

func newStage(t *testing.T, work *workv1alpha1.Work, live *unstructured.Unstructured) *stage {
	t.Helper()
	s := &stage{hub: adoptiontest.NewAPI(t, nil, work, readyCluster()), clock: now}
	if live != nil {
		s.west = adoptiontest.NewAPI(t, nil, live)
		s.west.Exists(t, live)
	} else {
		s.west = adoptiontest.NewAPI(t, nil)
	}
	s.hub.Exists(t, work)
	s.work, s.member = work, &member.Client{Name: "west", API: s.west}
	s.reconciler = &reconciler{
		client: s.hub, reader: s.hub, hub: "hub", now: func() time.Time { return s.clock },
		clientOf: func(string) *member.Client { return s.member }, originals: &originals{client: s.hub, reader: s.hub},
		rechecks: &member.Rechecks{OnFinished: func(cluster string) { s.rechecked = append(s.rechecked, cluster) }},
	}
	return s
}

// failing fails the requests of a verb.
func failing(fails map[string]error) func(string, client.Object) error {
	return func(verb string, _ client.Object) error { return fails[verb] }
}

func (s *stage) original(t *testing.T) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.work.Namespace, Name: model.OriginalName(s.work)}}
	if !s.hub.Exists(t, secret) {
		return nil
	}
	return secret
}

func (s *stage) configMap(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "it"}}
	if !s.west.Exists(t, object) {
		return nil
	}
	return object
}

// A takeover that changes what users see saves the original first; if that fails, the object stays as it is.
func TestTakeover(t *testing.T) {
	const dryRun, update = "dry-run update ConfigMap it", "update ConfigMap it"
	for name, c := range map[string]struct {
		live      string
		defaults  string
		hub, west map[string]error
		writes    []string
		saved     bool
		failure   func(error) bool
	}{
		"the same content":                    {live: "{a: b}", writes: []string{update}},
		"other content":                       {live: "{a: c}", writes: []string{dryRun, update}, saved: true},
		"content that the member adds itself": {live: "{a: b, zone: w}", defaults: "zone", writes: []string{dryRun, update}},
		"a dry run that is refused":           {live: "{a: c}", west: map[string]error{"dry-run update": invalid}, failure: apierrors.IsInvalid},
		"an original that cannot be saved":    {live: "{a: c}", hub: map[string]error{"create": forbidden}, writes: []string{dryRun}, failure: apierrors.IsForbidden},
		"an object that changes meanwhile":    {live: "{a: c}", west: map[string]error{"update": conflict}, writes: []string{dryRun}, saved: true, failure: apierrors.IsConflict},
		"an object that is deleted meanwhile": {live: "{a: b}", west: map[string]error{"update": notFound}, failure: apierrors.IsNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			live := adoptiontest.Object(t, "ConfigMap v1\ndata: "+c.live)
			s := newStage(t, workFor(t, false), live)
			s.hub.On = failing(c.hub)
			savedBefore := false
			s.west.On = func(verb string, object client.Object) error {
				if verb == "update" {
					savedBefore = s.original(t) != nil
				}
				if verb == "dry-run update" && c.defaults != "" {
					_ = unstructured.SetNestedField(object.(*unstructured.Unstructured).Object, "w", "data", c.defaults)
				}
				return c.west[verb]
			}
			object := Object{Manifest: adoptiontest.Object(t, "ConfigMap v1\nmetadata: {annotations: {work.karmada.io/conflict-resolution: overwrite}}\ndata: {a: b}"), Live: live}
			step := Decide(Observed{Hub: "hub", Work: s.work, Cluster: readyCluster(), Connected: true}, object)
			if step.Action != model.ActionTakeOver {
				t.Fatalf("got %s", step.Action)
			}
			_, err := s.reconciler.applyStep(t.Context(), s.member, s.work, object, step)
			if failed := c.failure != nil; failed != (err != nil) || failed && !c.failure(err) {
				t.Errorf("got %v", err)
			}
			s.hub.On = nil
			if !slices.Equal(s.west.Writes, c.writes) || (s.original(t) != nil) != c.saved || savedBefore != c.saved {
				t.Errorf("got %v, saved: %t", s.west.Writes, savedBefore)
			}
			if got := s.configMap(t); slices.Contains(c.writes, update) != (got.Labels[model.LabelHub] == "hub") {
				t.Errorf("labels %v", got.Labels)
			}
		})
	}
}

// The Secret of a Work has the original of each of its manifests, as it was last before a takeover.
func TestSaveOriginals(t *testing.T) {
	one, two := adoptiontest.Object(t, "ConfigMap v1\ndata: {a: one}"), adoptiontest.Object(t, "ConfigMap v1\ndata: {a: two}")
	s := newStage(t, workFor(t, false), nil)
	o := s.reconciler.originals
	check := func(what string, i int, object *unstructured.Unstructured, writes ...string) {
		t.Helper()
		s.hub.Writes = nil
		if err := o.save(t.Context(), s.work, i, object); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got, err := o.load(t.Context(), s.work, i); err != nil || !EqualForUsers(got, object) {
			t.Errorf("%s: %v, %v", what, got, err)
		}
		if !slices.Equal(s.hub.Writes, writes) {
			t.Errorf("%s: %v", what, s.hub.Writes)
		}
	}
	check("the first", 0, one, "create Secret before-it")
	check("the same once more", 0, one)
	check("the second manifest", 1, two, "update Secret before-it")
	check("changed since", 0, two, "update Secret before-it")
	if got := s.original(t); len(got.Data) != 2 || got.Labels[model.LabelRestore] != "true" {
		t.Errorf("got %v", got)
	}
	if got, err := o.load(t.Context(), s.work, 2); got != nil || err != nil {
		t.Errorf("an original that was never saved: %v, %v", got, err)
	}
	for range 2 {
		if err := o.delete(t.Context(), s.work); err != nil || s.original(t) != nil {
			t.Errorf("deleted: %v", err)
		}
	}
	if got, err := o.load(t.Context(), s.work, 0); got != nil || err != nil {
		t.Errorf("after the deletion: %v, %v", got, err)
	}
	s.hub.On = failing(map[string]error{"get": forbidden})
	if _, err := o.load(t.Context(), s.work, 0); !apierrors.IsForbidden(err) {
		t.Errorf("an original that may not be read is taken for none: %v", err)
	}
}

// An object whose original does not fit into a Secret is not taken over, and the error says what to do.
func TestOriginalTooLarge(t *testing.T) {
	source, noise := rand.New(rand.NewPCG(1, 2)), make([]byte, maxOriginalSize+1)
	for i := range noise {
		noise[i] = byte(source.Uint32())
	}
	live := adoptiontest.Object(t, "ConfigMap v1\ndata: {a: "+base64.StdEncoding.EncodeToString(noise)+"}")
	s := newStage(t, workFor(t, false), nil)
	err := s.reconciler.originals.save(t.Context(), s.work, 0, live)
	if !member.IsUserError(err) || !strings.Contains(err.Error(), "make the template equal to the object") || s.original(t) != nil {
		t.Errorf("got %v", err)
	}
}

// The namespace of an object is created only if it is missing, and may be created by another client meanwhile.
func TestCreateObjectInAMissingNamespace(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "shop")
	for name, c := range map[string]struct {
		namespace string
		// failures are those of the requests that create the object, and namespaceErr of the one that creates the namespace.
		failures     []error
		namespaceErr error
		writes       []string
		says         string
	}{
		"there already":      {"shop", nil, nil, []string{"create ConfigMap it"}, ""},
		"missing":            {"shop", []error{missing}, nil, []string{"create Namespace shop", "create ConfigMap it"}, ""},
		"created meanwhile":  {"shop", []error{missing}, apierrors.NewAlreadyExists(configMaps, "shop"), []string{"create ConfigMap it"}, ""},
		"not to be created":  {"shop", []error{missing}, forbidden, nil, "create namespace shop: "},
		"deleted meanwhile":  {"shop", []error{missing, missing}, nil, []string{"create Namespace shop"}, `namespaces "shop" not found`},
		"refused for itself": {"shop", []error{invalid}, nil, nil, "is invalid"},
		"in no namespace":    {"", []error{missing}, nil, nil, `namespaces "shop" not found`},
		"created by another": {"shop", []error{apierrors.NewAlreadyExists(configMaps, "it")}, nil, nil, "already exists"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, workFor(t, false), nil)
			s.west.On = func(_ string, object client.Object) error {
				if _, ok := object.(*corev1.Namespace); ok {
					return c.namespaceErr
				}
				if len(c.failures) == 0 {
					return nil
				}
				err := c.failures[0]
				c.failures = c.failures[1:]
				return err
			}
			object := adoptiontest.Object(t, "ConfigMap v1\ndata: {a: b}")
			object.SetNamespace(c.namespace)
			err := createObject(t.Context(), s.member, object)
			if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) || !slices.Equal(s.west.Writes, c.writes) {
				t.Errorf("got %v, %v", s.west.Writes, err)
			}
		})
	}
}

// Drift is reverted a few times, and then the object is left alone until the window has passed.
func TestContestedObjectIsLeftAloneForAWhile(t *testing.T) {
	live := managedBy(adoptiontest.Object(t, "ConfigMap v1\ndata: {a: theirs}"), "hub")
	s := newStage(t, workFor(t, false), live)
	manifest := adoptiontest.Object(t, "ConfigMap v1\ndata: {a: b}")
	written := newRecord(manifest, manifest)
	s.work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{WrittenManifest: written.Manifest, WrittenObject: written.Object}}
	reconcile := func() passage.Action {
		object := Object{Manifest: manifest, Live: live, Restores: len(s.reconciler.driftLimiter.Recent(s.work.UID, s.clock, restoreWindow))}
		step := Decide(Observed{Hub: "hub", Work: s.work, Cluster: readyCluster(), Connected: true}, object)
		if step.Desired != nil {
			s.west.Exists(t, live)
			step.Desired.SetResourceVersion(live.GetResourceVersion())
		}
		if _, err := s.reconciler.applyStep(t.Context(), s.member, s.work, object, step); err != nil {
			t.Fatal(err)
		}
		_ = unstructured.SetNestedField(live.Object, "theirs", "data", "a")
		return step.Action
	}
	for i := range maxRestores {
		if got := reconcile(); got != model.ActionUpdate {
			t.Fatalf("restore %d: %s", i, got)
		}
	}
	if got := reconcile(); got != model.ActionLeave {
		t.Errorf("after %d restores: %s", maxRestores, got)
	}
	s.clock = s.clock.Add(restoreWindow + time.Second)
	if got := reconcile(); got != model.ActionUpdate {
		t.Errorf("after the window: %s", got)
	}
}

// The finalizer of a Work goes last: before that, its object is released and its originals are deleted, or nothing is.
func TestDeletionOfAWork(t *testing.T) {
	annotated := func(key string) func(*stage) {
		return func(s *stage) { s.work.Annotations = map[string]string{key: "true"} }
	}
	left := func(s *stage) {
		s.hub.On = func(verb string, object client.Object) error {
			if _, ok := object.(*clusterv1alpha1.Cluster); ok {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "clusters"}, "west")
			}
			return nil
		}
	}
	fails := func(west, hub map[string]error) func(*stage) {
		return func(s *stage) { s.west.On, s.hub.On = failing(west), failing(hub) }
	}
	const released = "patch Work it"
	forget := []string{"delete Secret before-it", released}
	for name, c := range map[string]struct {
		change    func(*stage)
		west, hub []string
		data      string
		failure   func(error) bool
	}{
		"deleted":  {nil, []string{"delete ConfigMap it"}, forget, "", nil},
		"restored": {annotated(model.AnnotationRestore), []string{"update ConfigMap it"}, forget, "original", nil},
		"restored, which is refused": {func(s *stage) {
			annotated(model.AnnotationRestore)(s)
			s.west.On = failing(map[string]error{"update": invalid})
		}, []string{"patch ConfigMap it"}, forget, "taken over", nil},
		"orphaned":                        {func(s *stage) { s.work.Spec.PreserveResourcesOnDeletion = ptr.To(true) }, []string{"patch ConfigMap it"}, forget, "taken over", nil},
		"kept for another Work":           {annotated(model.AnnotationKeep), nil, []string{released}, "taken over", nil},
		"the cluster has left":            {left, nil, forget, "taken over", nil},
		"the kind is gone":                {fails(map[string]error{"get": &meta.NoKindMatchError{}}, nil), nil, forget, "taken over", nil},
		"the object is gone":              {fails(map[string]error{"get": notFound}, nil), nil, forget, "taken over", nil},
		"the object goes meanwhile":       {fails(map[string]error{"delete": notFound}, nil), nil, forget, "taken over", nil},
		"the object changes meanwhile":    {fails(map[string]error{"delete": conflict}, nil), nil, nil, "taken over", apierrors.IsConflict},
		"the originals cannot be removed": {fails(nil, map[string]error{"delete": forbidden}), []string{"delete ConfigMap it"}, nil, "", apierrors.IsForbidden},
		"the Work goes meanwhile":         {fails(nil, map[string]error{"patch": notFound}), []string{"delete ConfigMap it"}, forget[:1], "", nil},
		"released before":                 {func(s *stage) { s.work.Finalizers = []string{"example.com/other"} }, nil, nil, "taken over", nil},
		"not connected":                   {func(s *stage) { s.member = nil }, nil, nil, "taken over", nil},
	} {
		t.Run(name, func(t *testing.T) {
			live := managedBy(adoptiontest.Object(t, "ConfigMap v1\nmetadata: {uid: one}\ndata: {is: taken over}"), "hub")
			live.SetLabels(model.MergeKeys(live.GetLabels(), nil, map[string]string{"team": "a"}))
			work := workFor(t, true)
			work.Finalizers = append(work.Finalizers, "example.com/other")
			s := newStage(t, work, live)
			if err := s.reconciler.originals.save(t.Context(), work, 0, adoptiontest.Object(t, "ConfigMap v1\nmetadata: {uid: one}\ndata: {is: original}")); err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				c.change(s)
				if err := s.hub.WithWatch.Update(t.Context(), s.work); err != nil && s.hub.On == nil {
					t.Fatal(err)
				}
			}
			s.hub.Writes, s.west.Writes = nil, nil
			result, err := s.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(work)})
			if failed := c.failure != nil; failed != (err != nil) || failed && !c.failure(err) {
				t.Errorf("got %v, %v", result, err)
			}
			if !slices.Equal(s.west.Writes, c.west) || !slices.Equal(s.hub.Writes, c.hub) {
				t.Errorf("the cluster: %v, the hub: %v", s.west.Writes, s.hub.Writes)
			}
			s.west.On, s.hub.On = nil, nil
			got := s.configMap(t)
			if (got == nil) != (c.data == "") || got != nil && got.Data["is"] != c.data {
				t.Errorf("got %v", got)
			}
			if wrote := len(c.west) > 0 && got != nil; wrote && (got.Labels[model.LabelManaged] != "" || got.Labels["team"] != "a") {
				t.Errorf("the released object has labels %v", got.Labels)
			}
			if kept := s.original(t) != nil; kept == slices.Contains(c.hub, forget[0]) {
				t.Errorf("the original is kept: %t", kept)
			}
		})
	}
}

// An object that another client changed after it was read is not deleted: it may be another one by now.
func TestDeletionOfAChangedObject(t *testing.T) {
	live := managedBy(adoptiontest.Object(t, "ConfigMap v1\ndata: {a: b}"), "hub")
	s := newStage(t, workFor(t, true), live)
	changed := s.configMap(t)
	changed.Data["a"] = "c"
	if err := s.west.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	err := releaseObject(t.Context(), s.member, Step{Step: passage.Step{Action: model.ActionDelete}}, live)
	if !apierrors.IsConflict(err) || !strings.HasPrefix(err.Error(), "delete ConfigMap shop/it in cluster west: ") || s.configMap(t) == nil {
		t.Errorf("got %v", err)
	}
}
