package moving_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/cluster"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// world is a cluster of its own, in which another system was before.
type world struct{ *harness.World }

func newWorld(t *testing.T, profile string, passages ...any) world {
	t.Helper()
	c := cluster.Start(t, cluster.Options{Profile: profile, KeepNamespaces: true})
	scratch, err := cluster.TempDir("fairlead-moving")
	if err != nil {
		t.Fatal(err)
	}
	w, err := harness.NewWorld(t.Context(), c, scratch, passages...)
	if err != nil {
		t.Fatal(err)
	}
	return world{w}
}

// operator starts one in place of the one before.
func (w world) operator(t *testing.T, flags ...string) {
	t.Helper()
	if w.Operator != nil {
		w.Operator.Kill()
	}
	if err := w.StartOperator(append([]string{"--leader-elect=true", harness.Lease(), "--leader-election-namespace=fairlead-system", "--chart-dir", cluster.Charts(t), "--metrics-insecure-bind-address=127.0.0.1:0"}, flags...)...); err != nil {
		t.Fatal(err)
	}
	w.Operator.KeepLogOnFailure(t)
}

// logged waits for a line of the log that has all these parts, behind an offset.
func (w world) logged(t *testing.T, since int, parts ...string) string {
	t.Helper()
	var found string
	wait.Until(t, func(context.Context) error {
		ended := w.Operator.Alive()
	lines:
		for _, line := range strings.Split(w.Operator.Log.Since(since), "\n") {
			for _, part := range parts {
				if !strings.Contains(line, part) {
					continue lines
				}
			}
			found = line
			return nil
		}
		return errors.Join(ended, fmt.Errorf("no line of the log has %q", parts))
	})
	return found
}

// answers is what a server of the operator answers.
func (w world) answers(t *testing.T, server, path string) string {
	t.Helper()
	line := w.logged(t, 0, "starting server", server, "addr=")
	address := regexp.MustCompile(`addr="?([0-9.:]+)`).FindStringSubmatch(line)[1]
	response, err := http.Get("http://" + address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// installCRDs installs those of a passage as another system does, which marks none of them as Fairlead's.
func (w world) installCRDs(t *testing.T, passage, manager string, changes ...func(*apiextensionsv1.CustomResourceDefinition)) {
	t.Helper()
	for _, p := range operator.Passages() {
		if p.Name != passage {
			continue
		}
		all, err := crds.Named(p.CRDs...)
		if err != nil {
			t.Fatal(err)
		}
		for _, crd := range all {
			if strings.HasSuffix(crd.Name, ".fairlead.dev") {
				continue
			}
			crd.Annotations, crd.Labels = nil, nil
			for _, change := range changes {
				change(crd)
			}
			if err := w.Create(t.Context(), crd, client.FieldOwner(manager)); err != nil {
				t.Fatal(err)
			}
			harness.WaitFor(t, w, crd, func(live *apiextensionsv1.CustomResourceDefinition) error {
				for _, c := range live.Status.Conditions {
					if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
						return nil
					}
				}
				return errors.New("not established")
			})
		}
	}
}

// scale changes the replicas of another controller, named as NAMESPACE/NAME.
func (w world) scale(t *testing.T, deployment string, replicas int32) {
	t.Helper()
	namespace, name, _ := strings.Cut(deployment, "/")
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	harness.Change(t, w, d, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(replicas) })
}
