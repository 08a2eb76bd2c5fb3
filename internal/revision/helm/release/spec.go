// Package release installs charts as Helm releases, in such a way that the process can be killed at any write.
//
// Helm's actions keep the records, Helm's engine renders the templates. Two things are done differently here. Charts are
// always rendered as for a first install, because after a crash it is unknown which objects of an upgrade exist already. And
// objects are written and deleted by this package, which binds every call to the caller's context, keeps fields that other
// clients must own, and names the object in every error.
package release

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		described.Templates = templateNames(s.chart())
	}
	raw, err := json.Marshal(described)
	if err != nil {
		// Values that are no JSON cannot be recorded either: Install says so.
		raw = []byte(err.Error())
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

func templateNames(c *chart.Chart) []string {
	names := []string{}
	for _, template := range c.Templates {
		names = append(names, template.Name)
	}
	for _, dependency := range c.Dependencies() {
		names = append(names, templateNames(dependency)...)
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

// chart is the one to render: a copy, because Helm changes charts when it works out their dependencies.
func (s Spec) chart() *chart.Chart { return pick(s.Chart.Chart, s.Only) }

func pick(c *chart.Chart, only func(string) bool) *chart.Chart {
	copied := *c
	metadata := *c.Metadata
	copied.Metadata = &metadata
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
	return labels
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
