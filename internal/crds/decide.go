package crds

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
)

// SchemaVersionAnnotation marks a CRD as Fairlead's and tells its schema version.
const SchemaVersionAnnotation = "fairlead.dev/schema-version"

// Outcome is what an install did with one CRD.
type Outcome string

const (
	Created        Outcome = "Created"
	Updated        Outcome = "Updated"
	Repaired       Outcome = "Repaired"
	TakenOver      Outcome = "TakenOver"
	Unchanged      Outcome = "Unchanged"
	NewerInCluster Outcome = "NewerInCluster"
	NotOwned       Outcome = "NotOwned"
	// Failed is a CRD that could not be read.
	Failed Outcome = "Failed"
	// NeedsWebhook is a CRD that was left as it is, because no webhook could convert its objects.
	NeedsWebhook Outcome = "NeedsWebhook"
	// Deleting is a CRD that is being deleted.
	Deleting Outcome = "Deleting"
)

// writes tells whether the outcome is reached by applying the CRD.
func (o Outcome) writes() bool {
	return o == Created || o == Updated || o == Repaired || o == TakenOver
}

// decide chooses the action for a CRD, given the live one (nil if there is none) and the one of this binary.
func decide(live, want *apiextensionsv1.CustomResourceDefinition, takeOver bool) (Outcome, string) {
	if live == nil {
		return Created, ""
	}
	if live.DeletionTimestamp != nil {
		return Deleting, "the CRD is being deleted"
	}
	have, marked := schemaVersion(live)
	if !marked {
		if takeOver {
			return TakenOver, "the CRD was " + ownership(live)
		}
		return NotOwned, "the CRD is " + ownership(live)
	}
	mine, _ := schemaVersion(want)
	switch {
	case have > mine:
		return NewerInCluster, newerMessage(live, want, have, mine)
	case have < mine:
		return Updated, fmt.Sprintf("from schema version %d to %d", have, mine)
	case !isUpToDate(live, want):
		return Repaired, fmt.Sprintf("the CRD differed from schema version %d", mine)
	}
	return Unchanged, ""
}

func schemaVersion(crd *apiextensionsv1.CustomResourceDefinition) (int, bool) {
	return markedVersion(crd.Annotations)
}

// isUpToDate tells whether a live CRD has the desired labels, annotations and schema.
func isUpToDate(live, want *apiextensionsv1.CustomResourceDefinition) bool {
	if !isSubset(want.Annotations, live.Annotations) || !isSubset(want.Labels, live.Labels) {
		return false
	}
	have, wanted := live.Spec.DeepCopy(), want.Spec.DeepCopy()
	if wanted.Conversion == nil {
		have.Conversion = nil
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(have)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(wanted)
	return equality.Semantic.DeepEqual(have, wanted)
}

func isSubset(want, have map[string]string) bool {
	return labels.SelectorFromSet(want).Matches(labels.Set(have))
}

func newerMessage(live, want *apiextensionsv1.CustomResourceDefinition, have, mine int) string {
	message := fmt.Sprintf("the cluster has schema version %d, newer than %d of this Fairlead, and keeps it", have, mine)
	var gone []string
	for _, v := range want.Spec.Versions {
		if v.Served && !slices.ContainsFunc(live.Spec.Versions, func(l apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return l.Served && l.Name == v.Name
		}) {
			gone = append(gone, v.Name)
		}
	}
	if len(gone) > 0 {
		message += "; that schema no longer serves " + strings.Join(gone, ", ") + ", so use a newer Fairlead"
	}
	return message
}

// ownership names the managers of a CRD, and its Helm release.
func ownership(crd *apiextensionsv1.CustomResourceDefinition) string {
	var managers []string
	for _, entry := range crd.ManagedFields {
		if entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:spec"`) {
			managers = append(managers, entry.Manager)
		}
	}
	slices.Sort(managers)
	text := "managed by " + strings.Join(slices.Compact(managers), ", ")
	if len(managers) == 0 {
		text = "managed by an unknown manager"
	}
	if release := crd.Annotations["meta.helm.sh/release-name"]; release != "" {
		text += fmt.Sprintf(" (Helm release %s/%s)", crd.Annotations["meta.helm.sh/release-namespace"], release)
	}
	return text
}
