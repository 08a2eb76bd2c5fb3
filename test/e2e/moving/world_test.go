package moving_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
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
	if err := w.StartOperator(append([]string{"--leader-elect=true", "--chart-dir", cluster.Charts(t), "--metrics-insecure-bind-address=127.0.0.1:0"}, flags...)...); err != nil {
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

// serves is what a server of the operator answers.
func (w world) serves(t *testing.T, server, path string) string {
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
func (w world) installCRDs(t *testing.T, passage, manager string) {
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

// apply creates the objects of a file as a field manager, with their status, a day ago as far as their field managers tell.
func (w world) apply(t *testing.T, file, manager string) []*unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var all []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		w.createAs(t, object, manager)
		all = append(all, object)
	}
}

func (w world) createAs(t *testing.T, object *unstructured.Unstructured, manager string) {
	t.Helper()
	status := object.Object["status"]
	wait.Until(t, func(ctx context.Context) error { // a kind may just have been installed
		err := w.Create(ctx, object, client.FieldOwner(manager))
		if meta.IsNoMatchError(err) {
			return err
		}
		if err != nil {
			return wait.Permanent(fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err))
		}
		return nil
	})
	if status != nil {
		object.Object["status"] = status
		if err := w.Status().Update(t.Context(), object, client.FieldOwner(manager)); err != nil {
			t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	w.age(t, object)
}

// age has the field managers of an object have written long ago.
func (w world) age(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	managed := object.GetManagedFields()
	for i := range managed {
		managed[i].Time = ptr.To(metav1.NewTime(time.Now().Add(-24 * time.Hour)))
	}
	object.SetManagedFields(managed)
	// The API server takes the times of a write that changes something besides.
	object.SetAnnotations(map[string]string{"example.com/aged": "true"})
	if err := w.Update(t.Context(), object, client.FieldOwner("age")); err != nil {
		t.Fatal(err)
	}
}
