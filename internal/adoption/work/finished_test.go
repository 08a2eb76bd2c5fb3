package work

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
	"github.com/fairlead/fairlead/internal/adoption/manifest"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/passage"
)

// A Job or Pod that has finished does not run again when it is removed, unless its template has changed. One that was removed
// before it had finished is created again.
func TestFinishedStaysFinished(t *testing.T) {
	const (
		job       = "Job batch/v1\nspec: {image: a}"
		ttl       = "Job batch/v1\nspec: {image: a, ttlSecondsAfterFinished: 5}"
		suspended = "Job batch/v1\nspec: {image: a, ttlSecondsAfterFinished: 5, suspend: true}"
		pod       = "Pod v1\nspec: {image: a, restartPolicy: Never}"
		server    = "Pod v1\nspec: {image: a}"

		complete = `{"conditions":[{"status":"True","type":"Complete"}]}`
		failed   = `{"conditions":[{"status":"True","type":"Failed"}]}`
		active   = `{"active":1}`
		done     = `{"phase":"Succeeded"}`
		evicted  = `{"conditions":[{"status":"True","type":"DisruptionTarget"}],"phase":"Failed"}`
	)
	for name, c := range map[string]struct {
		// manifest is the one of today, and written the one of the last write.
		written, manifest string
		// recorded, live and removed are statuses: that in the Work, that of a Job that is being deleted, and that of one whose
		// removal was seen.
		recorded, live, removed string
		action                  passage.Action
		// kept is the status in the Work afterwards.
		kept string
	}{
		"complete":                           {job, job, complete, "", "", model.ActionNone, complete},
		"failed":                             {job, job, failed, "", "", model.ActionNone, failed},
		"complete, with a TTL":               {ttl, ttl, complete, "", "", model.ActionNone, complete},
		"complete, and the template changed": {job, "Job batch/v1\nspec: {image: b}", complete, "", "", model.ActionCreate, ""},
		"complete, with a status of no Job":  {job, job, `{"conditions":"none"}`, "", "", model.ActionCreate, ""},
		"complete, and resumed":              {job, job, `{"conditions":[{"status":"False","type":"Complete"}]}`, "", "", model.ActionCreate, ""},
		"never written":                      {"", job, complete, "", "", model.ActionCreate, ""},
		"never written, with a TTL":          {"", ttl, "", "", "", model.ActionCreate, ""},
		"another kind":                       {"ConfigMap v1", "ConfigMap v1", complete, "", "", model.ActionCreate, ""},
		"a Job of another group":             {"Job example.com/v1", "Job example.com/v1", complete, "", "", model.ActionCreate, ""},

		"removed by hand before it finished":             {job, job, active, "", active, model.ActionCreate, ""},
		"removed by hand before it finished, with a TTL": {ttl, ttl, active, "", active, model.ActionCreate, ""},
		"removed before it had a status":                 {ttl, ttl, "", "", "{}", model.ActionCreate, ""},
		"finished and removed at once":                   {ttl, ttl, active, "", complete, model.ActionNone, complete},
		"finished and removed at once, without a TTL":    {job, job, active, "", failed, model.ActionNone, failed},

		"removed while nobody watched":                          {job, job, active, "", "", model.ActionCreate, ""},
		"removed while nobody watched, with a TTL":              {ttl, ttl, active, "", "", model.ActionNone, ""},
		"removed while nobody watched, with a TTL, and changed": {job, ttl, active, "", "", model.ActionCreate, ""},
		"removed while nobody watched, and never reported":      {ttl, ttl, "", "", "", model.ActionNone, ""},
		"removed while nobody watched, and suspended":           {suspended, suspended, `{"conditions":[{"status":"True","type":"Suspended"}]}`, "", "", model.ActionCreate, ""},
		"removed by hand, and suspended":                        {suspended, suspended, "", "", "{}", model.ActionCreate, ""},
		"being removed by its TTL, and seen finished only now":  {ttl, ttl, active, complete, "", model.ActionNone, complete},
		"being removed by its TTL":                              {ttl, ttl, complete, complete, "", model.ActionNone, complete},
		"being removed by hand before it finished, with a TTL":  {ttl, ttl, active, active, "", model.ActionWait, ""},
		"being removed by hand before it finished":              {job, job, active, active, "", model.ActionWait, ""},
		"being removed, complete, and its template has changed": {ttl, job, complete, complete, "", model.ActionWait, ""},
		"a Pod that succeeded":                                  {pod, pod, done, "", "", model.ActionNone, done},
		"a Pod that failed":                                     {pod, pod, `{"phase":"Failed"}`, "", "", model.ActionNone, `{"phase":"Failed"}`},
		"a Pod that runs":                                       {pod, pod, `{"phase":"Running"}`, "", "", model.ActionCreate, ""},
		"a Pod that was evicted":                                {pod, pod, evicted, "", "", model.ActionCreate, ""},
		"a Pod that is restarted":                               {server, server, `{"phase":"Failed"}`, "", "", model.ActionCreate, ""},
		"a Pod that succeeded, and is being removed":            {pod, pod, done, done, "", model.ActionNone, done},
		"a Pod that is stopped by its removal":                  {pod, pod, `{"phase":"Running"}`, done, "", model.ActionWait, ""},
		"a Pod with a status of no Pod":                         {pod, pod, `{"phase":7}`, "", "", model.ActionCreate, ""},
		"a Pod that succeeded, and whose template has changed":  {pod, "Pod v1\nspec: {image: b, restartPolicy: Never}", done, "", "", model.ActionCreate, ""},
		"a Pod that was removed while nobody watched":           {pod, pod, "", "", "", model.ActionCreate, ""},
	} {
		t.Run(name, func(t *testing.T) {
			work := workFor(t, false)
			work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{}}
			s := &work.Status.ManifestStatuses[0]
			if c.written != "" {
				written := manifestOf(t, c.written)
				s.WrittenManifest = newRecord(written, written).Manifest
			}
			if c.recorded != "" {
				s.Status = &runtime.RawExtension{Raw: []byte(c.recorded)}
			}
			object := Object{Manifest: manifestOf(t, c.manifest), Removed: withStatus(t, c.manifest, c.removed), Live: withStatus(t, c.manifest, c.live)}
			if object.Live != nil {
				managedBy(object.Live, "hub").SetDeletionTimestamp(ptr.To(metav1.NewTime(now)))
			}
			before := work.DeepCopy()
			step := Decide(Observed{Hub: "hub", Work: work}, object)
			if step.Action != c.action {
				t.Fatalf("got %s, %s", step.Action, step.Reason)
			}
			if step.Action != model.ActionNone {
				return
			}
			if !strings.HasSuffix(step.Reason.Message, "has finished, and runs again only if its template changes") {
				t.Errorf("the plan says %q", step.Reason.Message)
			}
			kept := StepStatus(work, object, step.Action)
			if kept.WrittenManifest != s.WrittenManifest || (kept.Status == nil) != (c.kept == "") || kept.Status != nil && string(kept.Status.Raw) != c.kept {
				t.Errorf("its status becomes %+v", kept)
			}
			// An operator that starts anew finds only what the Work says.
			restarted := before.DeepCopy()
			restarted.Status.ManifestStatuses[0] = *kept
			if again := Decide(Observed{Hub: "hub", Work: restarted}, Object{Manifest: object.Manifest}); again.Action != model.ActionNone {
				t.Errorf("after a restart: %s, %s", again.Action, again.Reason)
			}
		})
	}
}

// An object that another hub or a user has created is not the one that has finished.
func TestFinishedObjectOfAnother(t *testing.T) {
	const ttl = "Job batch/v1\nspec: {image: a, ttlSecondsAfterFinished: 5}"
	work := workFor(t, false)
	work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{WrittenManifest: newRecord(manifestOf(t, ttl), manifestOf(t, ttl)).Manifest}}
	live := withStatus(t, ttl, `{"conditions":[{"status":"True","type":"Complete"}]}`)
	live.SetDeletionTimestamp(ptr.To(metav1.NewTime(now)))
	if step := Decide(Observed{Hub: "hub", Work: work}, Object{Manifest: manifestOf(t, ttl), Live: live}); step.Action != model.ActionWait {
		t.Errorf("got %s, %s", step.Action, step.Reason)
	}
}

// A Job is suspended as its template says, and drift is reverted as that of any other object is.
func TestSuspendedJob(t *testing.T) {
	const job = "Job batch/v1\nspec: {image: a}"
	live := func(suspend string) *unstructured.Unstructured {
		return managedBy(adoptiontest.Object(t, "Job batch/v1\nspec: {image: a, suspend: "+suspend+"}"), "hub")
	}
	for name, c := range map[string]struct {
		manifest      string
		written, live string
		action        passage.Action
		becomes       any
	}{
		"suspended by the template":                   {job[:len(job)-1] + ", suspend: true}", "true", "true", model.ActionNone, nil},
		"resumed by hand":                             {job[:len(job)-1] + ", suspend: true}", "true", "false", model.ActionUpdate, true},
		"suspended by hand":                           {job[:len(job)-1] + ", suspend: false}", "false", "true", model.ActionUpdate, false},
		"suspended by hand, not said by the template": {job, "false", "true", model.ActionUpdate, nil},
	} {
		t.Run(name, func(t *testing.T) {
			work := workFor(t, false)
			record := newRecord(manifestOf(t, c.manifest), live(c.written))
			work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{WrittenManifest: record.Manifest, WrittenObject: record.Object}}
			step := Decide(Observed{Hub: "hub", Work: work}, Object{Manifest: manifestOf(t, c.manifest), Live: live(c.live)})
			if step.Action != c.action {
				t.Fatalf("got %s, %s", step.Action, step.Reason)
			}
			if step.Desired == nil {
				return
			}
			if got, _, _ := unstructured.NestedFieldNoCopy(step.Desired.Object, "spec", "suspend"); got != c.becomes {
				t.Errorf("suspend becomes %v", got)
			}
		})
	}
}

// withStatus is an object of a template with a status, nil without.
func withStatus(t *testing.T, template, status string) *unstructured.Unstructured {
	t.Helper()
	if status == "" {
		return nil
	}
	return adoptiontest.Object(t, template+"\nstatus: "+status)
}

// manifestOf is the manifest of a Work for a template.
func manifestOf(t *testing.T, template string) *unstructured.Unstructured {
	t.Helper()
	m, _, err := manifest.FromTemplate(adoptiontest.Object(t, template), policyv1alpha1.ConflictOverwrite)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
