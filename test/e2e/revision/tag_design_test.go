package revision_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/test/harness"
)

// The tag of the design, as it is written there and with what its comments offer, has the status that the design shows.
func TestStoryTagOfTheDesign(t *testing.T) {
	t.Parallel()
	w := ofDefault(t)
	system := w.istioSystem(t)
	w.namespace(t, v1.LabelInjection, v1.InjectionEnabled)
	harness.Create(t, w, revisionBased("default", system, "v1.24.0", 0))
	files, err := filepath.Glob("../../compatibility/testdata/accepted/tag-*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no YAML of the design: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			manifest, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var design v1.IstioRevisionTag
			if err := yaml.Unmarshal(manifest, &design); err != nil {
				t.Fatal(err)
			}
			w.apply(t, string(manifest))
			defer w.delete(t, makeTag(design.Name, "", ""))
			until(t, w, &v1.IstioRevisionTag{ObjectMeta: metav1.ObjectMeta{Name: design.Name}}, func(tag *v1.IstioRevisionTag) error {
				want, got := design.Status, tag.Status
				// The design writes the version with dots; no object of Kubernetes that is named after it could.
				want.IstioRevision = strings.ReplaceAll(want.IstioRevision, ".", "-")
				if got.State != want.State || got.IstiodNamespace != want.IstiodNamespace ||
					got.IstioRevision != want.IstioRevision || got.ObservedGeneration != want.ObservedGeneration {
					return fmt.Errorf("its status is %+v, want %+v", got, want)
				}
				if len(got.Conditions) != 2 {
					return errors.New("it does not say both Reconciled and InUse")
				}
				return nil
			})
			w.injects(t, "default", "istio-system/istiod-default-v1-24-0")
		})
	}
}
