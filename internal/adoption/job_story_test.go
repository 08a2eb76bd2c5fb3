package adoption

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

const (
	report    = "Job batch/v1\nspec: {suspend: false, template: {spec: {containers: [{name: report, image: report:v1}]}}}"
	reportTTL = "Job batch/v1\nspec: {suspend: false, ttlSecondsAfterFinished: 5, template: {spec: {containers: [{name: report, image: report:v1}]}}}"
)

// jobs adds a Job to the hub, and a policy that takes it to all clusters.
func (w *world) jobs(text string) {
	w.template("report", text)
	w.do("a policy for Jobs", func() {
		w.policy("batch", abort).Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "batch/v1", Kind: "Job"}}
	})
}

// ends sets the condition of a Job that has run to its end.
func (w *world) ends(member, condition string) {
	w.edit(member, "Job report", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{"type": condition, "status": "True"}}, "status", "conditions")
	})
}

func (w *world) suspend(member string, is bool) {
	w.edit(member, "Job report", func(u *unstructured.Unstructured) { _ = unstructured.SetNestedField(u.Object, is, "spec", "suspend") })
}

// jobStories are of Jobs, which run to an end.
func jobStories() map[string]story {
	v2 := func(text string) string { return strings.Replace(text, "report:v1", "report:v2", 1) }
	return map[string]story{
		"job-removed-by-ttl": {"A Job completes in one cluster and fails in the other. Both are removed, the second at once, and neither runs again. A changed template runs in both.", func(w *world) {
			w.jobs(reportTTL)
			w.do("the Job in east completes", func() { w.ends("east", "Complete") })
			w.do("the TTL controller of east removes the Job", func() { w.remove("east", "Job report") })
			w.do("the Job in west fails, and is removed before the operator looks", func() {
				w.ends("west", "Failed")
				w.remove("west", "Job report")
			})
			w.show()
			w.do("the image of the template changes", func() { w.template("report", v2(reportTTL)) })
		}},
		"job-removed-by-hand": {"A Job is removed by hand before it has finished, and is created again. When it has finished, it is removed once more, and does not run again.", func(w *world) {
			w.jobs(report)
			w.do("kubectl delete job report, in west", func() { w.remove("west", "Job report") })
			w.do("the Job in west completes", func() { w.ends("west", "Complete") })
			w.do("kubectl delete job report, in west", func() { w.remove("west", "Job report") })
			w.show()
			w.do("the parallelism of the template changes", func() { w.template("report", strings.Replace(report, "suspend:", "parallelism: 2, suspend:", 1)) })
		}},
		"job-while-operator-is-down": {"The operator has seen a Job complete in one cluster, and is down when the Job is removed there. In the other cluster it misses the end too. Neither runs again.", func(w *world) {
			w.jobs(reportTTL)
			w.do("the Job in east completes", func() { w.ends("east", "Complete") })
			w.whileDown("the TTL controllers remove the Jobs of east, and of west, which completes only now", func() {
				w.ends("west", "Complete")
				w.remove("east", "Job report")
				w.remove("west", "Job report")
			})
			w.do("the operator starts", func() {})
			w.show()
			w.do("the image of the template changes", func() { w.template("report", v2(reportTTL)) })
		}},
		"job-work-deleted": {"A Job has finished and is removed. Somebody deletes its binding, and then its Works, twice. All are created again, and the Job does not run again until its template changes.", func(w *world) {
			w.jobs(report)
			for _, member := range []string{"east", "west"} {
				w.do("the Job in "+member+" completes", func() { w.ends(member, "Complete") })
				w.do("kubectl delete job report, in "+member, func() { w.remove(member, "Job report") })
			}
			w.do("kubectl delete resourcebinding report-job", w.deleteBindings)
			w.do("kubectl delete work, in all clusters", func() {
				for _, key := range sortedKeys(w.works) {
					w.deleteWork(w.works[key])
				}
			})
			w.do("kubectl delete work once more, in all clusters", func() {
				for _, key := range sortedKeys(w.works) {
					w.deleteWork(w.works[key])
				}
			})
			w.do("the parallelism of the template changes", func() { w.template("report", strings.Replace(report, "suspend:", "parallelism: 2, suspend:", 1)) })
		}},
		"job-suspended": {"A Job is suspended by its template. A user resumes it in one cluster, which is reverted as any drift is, and removes it in the other, where it is created again. Then the template resumes it.", func(w *world) {
			suspended := strings.Replace(reportTTL, "suspend: false", "suspend: true", 1)
			w.jobs(suspended)
			w.do("a user resumes the Job in east", func() { w.suspend("east", false) })
			w.do("kubectl delete job report, in west", func() { w.remove("west", "Job report") })
			w.whileDown("kubectl delete job report, in west", func() { w.remove("west", "Job report") })
			w.do("the operator starts", func() {})
			w.do("the template resumes the Job", func() { w.template("report", reportTTL) })
			w.do("a user suspends the Job in east", func() { w.suspend("east", true) })
		}},
	}
}
