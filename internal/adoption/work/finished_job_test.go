package work

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// A Job that has finished is not created again when it is cleaned up, unless its template has changed.
func TestFinishedJobStaysFinished(t *testing.T) {
	const job = "Job batch/v1\nspec: {image: a}"
	for name, c := range map[string]struct {
		written, manifest, status string
		finished                  bool
	}{
		"complete":                {job, job, `{"conditions":[{"type":"Complete","status":"True"}]}`, true},
		"failed":                  {job, job, `{"conditions":[{"type":"Failed","status":"True"}]}`, true},
		"after its start":         {job, job, `{"active":1}`, false},
		"no longer complete":      {job, job, `{"conditions":[{"type":"Complete","status":"False"}]}`, false},
		"suspended":               {job, job, `{"conditions":[{"type":"Suspended","status":"True"}]}`, false},
		"with a status of no Job": {job, job, `{"conditions":"none"}`, false},
		"with a changed template": {job, "Job batch/v1\nspec: {image: b}", `{"conditions":[{"type":"Complete","status":"True"}]}`, false},
		"never written":           {"", job, `{"conditions":[{"type":"Complete","status":"True"}]}`, false},
		"never reported":          {job, job, "", false},
		"another kind":            {"ConfigMap v1", "ConfigMap v1", `{"conditions":[{"type":"Complete","status":"True"}]}`, false},
		"a Job of another group":  {"Job example.com/v1", "Job example.com/v1", `{"conditions":[{"type":"Complete","status":"True"}]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			work := workFor(t, false)
			work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{}}
			s := &work.Status.ManifestStatuses[0]
			if c.written != "" {
				written := manifestOf(t, c.written)
				s.WrittenManifest = newRecord(written, written).Manifest
			}
			if c.status != "" {
				s.Status = &runtime.RawExtension{Raw: []byte(c.status)}
			}
			object := Object{Manifest: manifestOf(t, c.manifest)}
			action := Decide(Observed{Hub: "hub", Work: work}, object).Action
			if finished := action == model.ActionNone; finished != c.finished || !finished && action != model.ActionCreate {
				t.Errorf("%s", action)
			}
			if kept := StepStatus(work, object, action); (kept == s) != c.finished {
				t.Errorf("its status becomes %v", kept)
			}
		})
	}
}

// manifestOf is the manifest of a Work for a template.
func manifestOf(t *testing.T, template string) *unstructured.Unstructured {
	t.Helper()
	m, err := manifest.FromTemplate(adoptiontest.Object(t, template), policyv1alpha1.ConflictOverwrite)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
