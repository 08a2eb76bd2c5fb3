package operator

import (
	"fmt"
	"slices"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/migration"
	"github.com/fairlead/fairlead/internal/revision"
	"github.com/fairlead/fairlead/internal/revision/charts"
)

// Passage is one kind of move that the operator can run.
type Passage struct {
	Name string
	// Caches are the kinds it reads from the cache. They must be served before it starts, nothing else is cached, and
	// the operator is ready when all of them are synced.
	Caches []client.Object
	Setup  func(ctrl.Manager, Options) error
}

// Passages are all that exist, in the order in which they start.
func Passages() []Passage {
	return []Passage{
		{Name: revision.Name, Caches: revision.Caches(), Setup: setupRevision},
	}
}

func setupRevision(mgr ctrl.Manager, options Options) error {
	source, err := charts.New(options.Charts)
	if err != nil {
		return err
	}
	mgr.GetLogger().Info("Istio's charts come from " + source.String())
	shared, err := revision.Setup(mgr, source)
	if err != nil {
		return err
	}
	return migration.Setup(mgr, shared.Client, shared.Users)
}

// Names of the passages, as --passages takes them.
func Names() []string {
	var names []string
	for _, p := range Passages() {
		names = append(names, p.Name)
	}
	return names
}

// selectPassages keeps those asked for, in the order in which they start; asking for none means all.
func selectPassages(known []Passage, asked []string) ([]Passage, error) {
	if len(asked) == 0 {
		return known, nil
	}
	var names []string
	for _, p := range known {
		names = append(names, p.Name)
	}
	for _, name := range asked {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("unknown passage %q: the known ones are %s", name, strings.Join(names, ", "))
		}
	}
	var selected []Passage
	for _, p := range known {
		if slices.Contains(asked, p.Name) {
			selected = append(selected, p)
		}
	}
	return selected, nil
}
