package cli

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/cli/kind"
	"github.com/fairlead/fairlead/internal/crds"
)

// suggestType explains a TYPE that the cluster does not have: the CRD is missing, or the name is misspelt. Other errors stay as
// they are.
func suggestType(err error, kinds kind.Registry) error {
	var unknown connect.UnknownTypeError
	if !errors.As(err, &unknown) {
		return err
	}
	all, loadErr := crds.All()
	if loadErr != nil {
		return loadErr
	}
	typed, _, _ := strings.Cut(strings.ToLower(unknown.Type), ".")
	var types []string
	closest, distance := "", min(2, max(1, len(typed)/2))+1
	for _, crd := range all {
		names := typeNames(crd)
		if slices.Contains(names, typed) {
			return console.UsageErrorf("%v: CRD %s is not installed there; to install it, run `fairlead crds install`", err, crd.Name)
		}
		if !startsPassage(kinds, crd) {
			continue
		}
		types = append(types, crd.Spec.Names.Singular)
		for _, name := range names {
			if d := editDistance(typed, name); d < distance {
				closest, distance = name, d
			}
		}
	}
	if closest != "" {
		return console.UsageErrorf("%v: did you mean %s?", err, closest)
	}
	slices.Sort(types)
	return console.UsageErrorf("%v: Fairlead's are %s", err, strings.Join(types, ", "))
}

// typeNames are what kubectl takes for a type, the singular first.
func typeNames(crd *apiextensionsv1.CustomResourceDefinition) []string {
	n := crd.Spec.Names
	return append([]string{cmp.Or(n.Singular, strings.ToLower(n.Kind)), n.Plural}, n.ShortNames...)
}

func startsPassage(kinds kind.Registry, crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(kinds, func(k kind.Kind) bool {
		return slices.Contains(k.GroupKinds(), schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind})
	})
}

// editDistance is how many letters have to be added, removed or replaced to make one word the other.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(row[j]+1, row[j+1]+1, replaced)
		}
	}
	return row[len(b)]
}
