// Package release installs charts as Helm releases, in such a way that the process can be killed at any write.
//
// Helm's engine renders the templates, Helm's storage keeps the records. The steps of Helm's install, upgrade and uninstall are
// this package's own: charts are always rendered as for a first install, because after a crash it is unknown which objects of an
// upgrade exist already; every call ends with the caller's context; fields that other clients must own are kept; and every error
// names the object.
package release

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/revision/helm/charts"
)

// renderingVersion is part of every fingerprint. It grows when the objects of an unchanged spec become others.
const renderingVersion = 1

// Spec is a release as it should be.
type Spec struct {
	Name, Namespace string
	// Owner, if any, is a cluster-scoped resource that owns the objects.
	Owner *metav1.OwnerReference
	Chart *charts.Chart
	// ChartVersion is recorded with the release. The chart's own is the default.
	ChartVersion string
	Values       map[string]any
	// Only, if set, picks the templates that are rendered, helpers included, by names such as "templates/service.yaml".
	Only func(template string) bool
	// TakeOwnership adopts objects of another release or without an owner.
	TakeOwnership bool
	// Replaces are the namespaces, by name, of releases of the same name, which are uninstalled when this one is installed. They
	// are recorded, and nothing else depends on them.
	Replaces map[string]types.UID
}

// Templates picks those that begin with a prefix, helpers, and the templates by which Istio's charts set values.
func Templates(prefix string) (only func(template string) bool) {
	return func(template string) bool {
		name := path.Base(template)
		return strings.HasPrefix(name, prefix) || strings.HasPrefix(name, "zz") || strings.HasPrefix(name, "_")
	}
}

func (s Spec) key() types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
}

// Fingerprint tells two specs apart that would not install the same. It renders nothing.
func (s Spec) Fingerprint() string {
	described := struct {
		Rendering       int
		Name, Namespace string
		Owner           *metav1.OwnerReference
		Chart, Version  string
		Templates       []string
		Values          map[string]any
	}{renderingVersion, s.Name, s.Namespace, s.controller(), s.Chart.Digest, s.chartVersion(), nil, s.Values}
	if len(s.Values) == 0 {
		described.Values = map[string]any{}
	}
	if s.Only != nil {
		described.Templates = templateNames(s.Chart.Chart, s.Only)
	}
	raw, err := json.Marshal(described)
	if err != nil {
		// Values that are no JSON cannot be recorded either: Install says so.
		raw = []byte(err.Error())
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

func templateNames(c *chart.Chart, only func(string) bool) []string {
	names := []string{}
	for _, template := range c.Templates {
		if only(template.Name) {
			names = append(names, template.Name)
		}
	}
	for _, dependency := range c.Dependencies() {
		names = append(names, templateNames(dependency, only)...)
	}
	return names
}

// controller is the reference that every object gets. It does not block the owner's deletion, which would take a
// permission on the owner's finalizers in some clusters.
func (s Spec) controller() *metav1.OwnerReference {
	if s.Owner == nil {
		return nil
	}
	controller := true
	return &metav1.OwnerReference{
		APIVersion: s.Owner.APIVersion, Kind: s.Owner.Kind, Name: s.Owner.Name, UID: s.Owner.UID, Controller: &controller,
	}
}

// pick is the chart to render: a copy, because templates change the values of a chart, and Helm its dependencies.
func pick(c *chart.Chart, only func(string) bool) *chart.Chart {
	copied := *c
	metadata := *c.Metadata
	metadata.Dependencies = slices.Clone(metadata.Dependencies)
	for i, dependency := range metadata.Dependencies {
		own := *dependency
		metadata.Dependencies[i] = &own
	}
	copied.Metadata, copied.Values = &metadata, runtime.DeepCopyJSON(c.Values)
	if only != nil {
		copied.Templates = nil
		for _, template := range c.Templates {
			if only(template.Name) {
				copied.Templates = append(copied.Templates, template)
			}
		}
	}
	dependencies := make([]*chart.Chart, 0, len(c.Dependencies()))
	for _, dependency := range c.Dependencies() {
		dependencies = append(dependencies, pick(dependency, only))
	}
	copied.SetDependencies(dependencies...)
	return &copied
}

func (s Spec) chartVersion() string {
	return cmp.Or(s.ChartVersion, s.Chart.Metadata.Version)
}

// labels of the Secrets that record the release.
func (s Spec) labels() map[string]string {
	labels := map[string]string{
		v1.LabelPassage:      v1.PassageRevision,
		v1.LabelFingerprint:  s.Fingerprint(),
		v1.LabelChartVersion: labelValue(s.chartVersion()),
	}
	if s.Owner != nil {
		labels[v1.LabelOwner] = OwnerLabel(s.Owner)
	}
	for namespace, uid := range s.Replaces {
		labels[v1.LabelReplacesPrefix+namespace] = string(uid)
	}
	return labels
}

// ReplacedBy are the namespaces of the releases that a recorded one replaces.
func ReplacedBy(record metav1.Object) map[string]types.UID {
	namespaces := map[string]types.UID{}
	for label, uid := range record.GetLabels() {
		if namespace, ok := strings.CutPrefix(label, v1.LabelReplacesPrefix); ok {
			namespaces[namespace] = types.UID(uid)
		}
	}
	return namespaces
}

// OwnerLabel is the value of v1.LabelOwner for an owner: IstioRevision.default.
func OwnerLabel(owner *metav1.OwnerReference) string {
	return labelValue(owner.Kind + "." + owner.Name)
}

var notInLabels = regexp.MustCompile(`[^A-Za-z0-9_.-]`)

// labelValue makes a text fit into a label. What has to be cut ends in a hash of the whole.
func labelValue(text string) string {
	safe := strings.Trim(notInLabels.ReplaceAllString(text, "_"), "_.-")
	if len(safe) <= validation.LabelValueMaxLength {
		return safe
	}
	sum := sha256.Sum256([]byte(text))
	hash := hex.EncodeToString(sum[:4])
	return safe[:validation.LabelValueMaxLength-len(hash)-1] + "-" + hash
}
