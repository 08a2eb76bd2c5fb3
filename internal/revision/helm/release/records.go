package release

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/yaml"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// session works on a release until its context ends.
type session struct {
	*Manager
	ctx   context.Context
	key   types.NamespacedName
	store *storage.Storage
}

// session has the records of the release, without their objects.
func (m *Manager) session(ctx context.Context, key types.NamespacedName) (*session, history, error) {
	client, err := corev1.NewForConfigAndClient(m.config, m.httpFor(ctx))
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the API server: %w", err)
	}
	s := &session{m, ctx, key, storage.Init(driver.NewSecrets(client.Secrets(key.Namespace)))}
	past, err := s.history()
	return s, past, err
}

// record is one attempt to install or upgrade a release, and the objects it may have created.
type record struct {
	*helm.Release
	objects []*unstructured.Unstructured
}

// newRecord is the first record of a release.
func newRecord(spec Spec, objects []*unstructured.Unstructured) (*helm.Release, error) {
	if err := chartutil.ValidateReleaseName(spec.Name); err != nil {
		return nil, fmt.Errorf("release name %q: %w", spec.Name, err)
	}
	var manifest bytes.Buffer
	for _, object := range objects {
		raw, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("write %s as YAML: %w", describe(object), err)
		}
		manifest.WriteString("---\n")
		manifest.Write(raw)
	}
	now := time.Now()
	return &helm.Release{
		Name: spec.Name, Namespace: spec.Namespace, Labels: spec.labels(), Version: 1,
		Info: &helm.Info{FirstDeployed: now, LastDeployed: now},
		// Templates and files would make every record many times larger.
		Chart:  &chart.Chart{Metadata: spec.Chart.Metadata, Values: spec.Chart.Values},
		Config: spec.Values, Manifest: manifest.String(), ApplyMethod: string(helm.ApplyMethodServerSideApply),
	}, nil
}

// history has the records of a release, the oldest first.
type history []record

func (s *session) history() (history, error) {
	found, err := s.store.History(s.key.Name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the records of release %s: %w", s.key, err)
	}
	var past history
	for _, one := range found {
		made, ok := one.(*helm.Release)
		if !ok {
			return nil, fmt.Errorf("read the records of release %s: one is of an unknown kind, %T", s.key, one)
		}
		past = append(past, record{Release: made})
	}
	slices.SortFunc(past, func(a, b record) int { return cmp.Compare(a.Version, b.Version) })
	return past, nil
}

// loadObjects decodes the objects of each record.
func (s *session) loadObjects(past history) error {
	for i := range past {
		objects, err := s.objectsOf(past[i].Release)
		if err != nil {
			return fmt.Errorf("read record %d of release %s: %w", past[i].Version, s.key, err)
		}
		past[i].objects = objects
	}
	return nil
}

// objectsOf a record are those of its manifest whose kind still exists.
func (s *session) objectsOf(made *helm.Release) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, document := range releaseutil.SplitManifests(made.Manifest) {
		found, err := decode(document)
		if err != nil {
			return nil, err
		}
		for _, object := range found {
			setOwnership(object, s.key, nil)
			err := s.setNamespaces([]*unstructured.Unstructured{object}, s.key.Namespace)
			if meta.IsNoMatchError(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// installed tells whether the last attempt was of the same spec and is deployed.
func (h history) installed(fingerprint string) (State, bool) {
	if len(h) == 0 {
		return State{}, false
	}
	state := stateOf(h[len(h)-1].Release)
	return state, state.Deployed() && state.Fingerprint == fingerprint
}

func stateOf(made *helm.Release) State {
	return State{
		Name: made.Name, Namespace: made.Namespace, Exists: true,
		Version: made.Version, Status: made.Info.Status.String(),
		Fingerprint: made.Labels[v1.LabelFingerprint], ChartVersion: made.Labels[v1.LabelChartVersion],
	}
}

// deployed are the records in status deployed.
func (h history) deployed() history {
	return slices.DeleteFunc(slices.Clone(h), func(r record) bool { return r.Info.Status != common.StatusDeployed })
}

// current is the last deployed record or, without one, the last record.
func (h history) current() *helm.Release {
	if deployed := h.deployed(); len(deployed) > 0 {
		h = deployed
	}
	return h[len(h)-1].Release
}

// objects that any of the records knows of.
func (h history) objects() []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	seen := map[identity]bool{}
	for _, r := range slices.Backward(h) {
		for _, object := range r.objects {
			if id := identify(object); !seen[id] {
				seen[id] = true
				all = append(all, object)
			}
		}
	}
	return all
}

// splitObsolete separates the records to keep from those to delete. The last deployed record is kept, and all later ones, which
// are failed attempts that may list further objects. A failed attempt is obsolete when a later record lists all its objects, so
// that repeated failures do not pile up.
func (h history) splitObsolete() (kept, obsolete history) {
	first := 0
	for i, r := range h {
		if r.Info.Status == common.StatusDeployed {
			first = i
		}
	}
	for i, r := range h {
		covered := slices.ContainsFunc(h[i+1:], func(later record) bool { return later.covers(r) })
		done := r.Info.Status == common.StatusSuperseded || r.Info.Status != common.StatusDeployed && covered
		if i < first || done && i < len(h)-1 {
			obsolete = append(obsolete, r)
		} else {
			kept = append(kept, r)
		}
	}
	return kept, obsolete
}

func (r record) covers(other record) bool {
	known := map[identity]bool{}
	for _, object := range r.objects {
		known[identify(object)] = true
	}
	return !slices.ContainsFunc(other.objects, func(object *unstructured.Unstructured) bool { return !known[identify(object)] })
}

// prepareRetry prepares a release for another attempt. An interrupted attempt is marked as failed: no other process works on
// that attempt, and its record lists its objects.
func (s *session) prepareRetry(past history) (history, error) {
	if len(past) == 0 {
		return nil, nil
	}
	latest := past[len(past)-1]
	switch latest.Info.Status {
	case common.StatusDeployed, common.StatusFailed, common.StatusSuperseded:
	default:
		latest.SetStatus(common.StatusFailed, fmt.Sprintf("Interrupted while %s", latest.Info.Status))
		if err := s.store.Update(latest.Release); err != nil {
			return nil, fmt.Errorf("mark record %d of release %s as failed: %w", latest.Version, s.key, err)
		}
	}
	kept, obsolete := past.splitObsolete()
	return kept, s.deleteRecords(obsolete)
}

func (s *session) deleteRecords(records history) error {
	for _, r := range records {
		_, err := s.store.Delete(r.Name, r.Version)
		if err != nil && !errors.Is(err, driver.ErrReleaseNotFound) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete record %d of release %s: %w", r.Version, s.key, err)
		}
	}
	return nil
}

// removalOrder is Helm's uninstall order: webhooks before the Services that they call.
func removalOrder(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	rank := func(object *unstructured.Unstructured) int {
		if at := slices.Index(releaseutil.UninstallOrder, object.GetKind()); at >= 0 {
			return at
		}
		return len(releaseutil.UninstallOrder)
	}
	sorted := slices.Clone(objects)
	slices.SortStableFunc(sorted, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return sorted
}
