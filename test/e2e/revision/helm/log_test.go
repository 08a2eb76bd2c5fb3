package helm_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/revision/helm/release"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// remarkable is a chart that the API server takes, and has something to say about.
var remarkable = makeChart("remarkable", map[string]string{"crd.yaml": `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: {{ .Values.plural }}.harbour.test
spec:
  group: harbour.test
  scope: Cluster
  names: {kind: {{ title .Values.plural }}, plural: {{ .Values.plural }}}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          flag: {type: string, format: binary}`})

// deleteCRD deletes a CRD and waits until it is gone: the test may run again. The test's own context has ended by then.
func (h *hub) deleteCRD(crd *unstructured.Unstructured) {
	err := wait.Try(context.Background(), func(ctx context.Context) error {
		if err := client.IgnoreNotFound(h.Delete(ctx, crd)); err != nil {
			return err
		}
		live, err := h.find(ctx, crd)
		if err == nil && live != nil {
			err = fmt.Errorf("%s is still there", describe(crd))
		}
		return err
	})
	if err != nil {
		h.t.Error(err)
	}
}

func TestChartWarningsAreLoggedAtDebug(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	for plural, verbosity := range map[string]int{"sloops": 0, "ketches": 1} {
		t.Run(plural, func(t *testing.T) {
			hub := hub.in(t)
			spec := release.Spec{
				Name: "remarkable", Namespace: hub.cluster.Namespace(t), Chart: remarkable, Values: map[string]any{"plural": plural},
			}
			for _, crd := range hub.render(spec) {
				t.Cleanup(func() { hub.deleteCRD(crd) })
			}
			var log strings.Builder
			logger := funcr.New(func(_, line string) { log.WriteString(line + "\n") }, funcr.Options{Verbosity: verbosity})
			if err := hub.Install(logr.NewContext(t.Context(), logger), spec); err != nil {
				t.Fatal(err)
			}
			if remarked := strings.Contains(log.String(), "unrecognized format"); remarked != (verbosity > 0) {
				t.Errorf("remarked with verbosity %d: %t\n%s", verbosity, remarked, log.String())
			}
		})
	}
}
