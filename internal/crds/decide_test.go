package crds

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestDecide(t *testing.T) {
	tests := map[string]struct {
		live, want *apiextensionsv1.CustomResourceDefinition
		takeOver   bool
		outcome    Outcome
		message    string
	}{
		"nothing there": {
			want:    makeCRD("boats").Schema(1).Obj(),
			outcome: Created,
		},
		"the same": {
			live: makeCRD("boats").Schema(1).Served().Obj(), want: makeCRD("boats").Schema(1).Obj(),
			outcome: Unchanged,
		},
		"others may add labels, annotations and owners": {
			live: makeCRD("boats").Schema(1).Served().Label("team", "a").Manager("kubectl-label").Obj(),
			want: makeCRD("boats").Schema(1).Obj(), outcome: Unchanged,
		},
		"a label of ours is gone": {
			live: makeCRD("boats").Schema(1).Served().Obj(), want: makeCRD("boats").Schema(1).Label("app", "fairlead").Obj(),
			outcome: Repaired, message: "the CRD differed from schema version 1",
		},
		"conversion is not stated, so another's stays": {
			live: makeCRD("boats").Schema(1).Served().Webhook().Obj(), want: makeCRD("boats").Schema(1).Obj(),
			outcome: Unchanged,
		},
		"conversion is stated": {
			live: makeCRD("boats").Schema(1).Served().Obj(), want: makeCRD("boats").Schema(1).Webhook().Obj(),
			outcome: Repaired, message: "the CRD differed from schema version 1",
		},
		"older in the cluster": {
			live: makeCRD("boats").Schema(1).Served().Obj(), want: makeCRD("boats").Schema(3).Field("crew").Obj(),
			outcome: Updated, message: "from schema version 1 to 3",
		},
		"newer in the cluster": {
			live: makeCRD("boats").Schema(10).Field("crew").Served().Obj(), want: makeCRD("boats").Schema(9).Obj(),
			outcome: NewerInCluster, message: "the cluster has schema version 10, newer than 9 of this Fairlead, and keeps it",
		},
		"newer in the cluster, even when asked to take over": {
			live: makeCRD("boats").Schema(2).Served().Obj(), want: makeCRD("boats").Schema(1).Obj(), takeOver: true,
			outcome: NewerInCluster, message: "the cluster has schema version 2, newer than 1 of this Fairlead, and keeps it",
		},
		"newer in the cluster, and our version is no longer served": {
			live: makeCRD("boats").Schema(2).Version("v2").Served().Obj(), want: makeCRD("boats").Schema(1).Obj(),
			outcome: NewerInCluster,
			message: "the cluster has schema version 2, newer than 1 of this Fairlead, and keeps it; that schema no longer serves v1, so use a newer Fairlead",
		},
		"edited by hand: a field added": {
			live: makeCRD("boats").Schema(1).Field("crew").Served().Manager("kubectl-edit").Obj(), want: makeCRD("boats").Schema(1).Obj(),
			outcome: Repaired, message: "the CRD differed from schema version 1",
		},
		"someone else's": {
			live: makeCRD("boats").Served().Manager("helm", "kubectl-edit", "helm").Obj(), want: makeCRD("boats").Schema(1).Obj(),
			outcome: NotOwned, message: "the CRD is managed by helm, kubectl-edit",
		},
		"someone else's, by a Helm release": {
			live: makeCRD("boats").Served().Manager("helm").
				Annotation("meta.helm.sh/release-name", "sail").Annotation("meta.helm.sh/release-namespace", "istio-system").Obj(),
			want:    makeCRD("boats").Schema(1).Obj(),
			outcome: NotOwned, message: "the CRD is managed by helm (Helm release istio-system/sail)",
		},
		"someone else's, equal to ours": {
			live: makeCRD("boats").Served().Obj(), want: makeCRD("boats").Schema(1).Obj(),
			outcome: NotOwned, message: "the CRD is managed by an unknown manager",
		},
		"someone else's, to be taken over": {
			live: makeCRD("boats").Served().Manager("helm").Obj(), want: makeCRD("boats").Schema(1).Obj(), takeOver: true,
			outcome: TakenOver, message: "the CRD was managed by helm",
		},
		"a mark that no Fairlead writes": {
			live: makeCRD("boats").Annotation(SchemaVersionAnnotation, "latest").Served().Obj(), want: makeCRD("boats").Schema(1).Obj(),
			outcome: NotOwned, message: "the CRD is managed by an unknown manager",
		},
		"on its way out": {
			live: makeCRD("boats").Schema(1).Served().Deleting().Obj(), want: makeCRD("boats").Schema(1).Obj(),
			outcome: Deleting, message: "the CRD is being deleted",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			outcome, message := decide(tc.live, tc.want, tc.takeOver)
			if outcome != tc.outcome || message != tc.message {
				t.Errorf("got %s %q\nwant %s %q", outcome, message, tc.outcome, tc.message)
			}
		})
	}
}
