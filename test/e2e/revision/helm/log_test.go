package helm_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/fairlead/fairlead/internal/revision/helm/release"
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
				t.Cleanup(func() { _ = hub.Delete(context.Background(), crd) })
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
