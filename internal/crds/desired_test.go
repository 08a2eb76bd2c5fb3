package crds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestShape(t *testing.T) {
	two := func() *crdBuilder { return makeCRD("boats").Schema(2).Next("v2", "crew") }
	one := func() *crdBuilder { return makeCRD("boats").Schema(1) }
	webhook := makeCRD("boats").Webhook().Obj().Spec.Conversion
	cases := map[string]struct {
		live       *apiextensionsv1.CustomResourceDefinition
		want       *apiextensionsv1.CustomResourceDefinition
		conversion *apiextensionsv1.CustomResourceConversion
		shaped     *apiextensionsv1.CustomResourceDefinition
		hold       string
	}{
		"one version is always as it is": {
			want: one().Obj(), conversion: nil, shaped: one().Obj(),
		},
		"versions that are alike need no webhook": {
			want: makeCRD("boats").Schema(2).Next("v2", "").Obj(), shaped: makeCRD("boats").Schema(2).Next("v2", "").Obj(),
		},
		"a new one, and a webhook": {
			want: two().Obj(), conversion: webhook, shaped: two().Webhook().Obj(),
		},
		"a new one without a webhook serves what it stores": {
			want: two().Obj(), shaped: two().Unserved("v1").Obj(),
		},
		"an older one with objects, and a webhook": {
			live: one().Stored("v1").Served().Obj(), want: two().Obj(), conversion: webhook, shaped: two().Webhook().Obj(),
		},
		"an older one with objects, without a webhook": {
			live: one().Stored("v1").Served().Obj(), want: two().Obj(), shaped: two().Obj(),
			hold: "objects are stored as v1, and only a webhook converts them to v2",
		},
		"one with objects of both, without a webhook": {
			live: two().Stored("v1", "v2").Served().Obj(), want: two().Obj(), shaped: two().Obj(),
			hold: "objects are stored as v1, and only a webhook converts them to v2",
		},
		"one whose objects are all migrated, without a webhook": {
			live: two().Unserved("v1").Stored("v2").Served().Obj(), want: two().Obj(), shaped: two().Unserved("v1").Obj(),
		},
		"one that has its webhook already keeps it": {
			live: two().Webhook().Stored("v1", "v2").Served().Obj(), want: two().Obj(), shaped: two().Obj(),
		},
		"one that somebody else's webhook converts": {
			live: makeCRD("boats").Webhook().Stored("v1").Served().Obj(), want: two().Obj(), shaped: two().Obj(),
			hold: "objects are stored as v1, and only a webhook converts them to v2",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			shaped, hold := desiredCRD(c.live, c.want, c.conversion)
			if diff := cmp.Diff(c.shaped, shaped); diff != "" {
				t.Error(diff)
			}
			if hold != c.hold {
				t.Errorf("held up by %q", hold)
			}
		})
	}
}

func TestWhichCRDsNeedAWebhook(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		if got, want := needsWebhook(crd), crd.Name == "materializes.materialize.cloud"; got != want {
			t.Errorf("%s needs one: %t", crd.Name, got)
		}
	}
}

func TestHeld(t *testing.T) {
	cases := map[Outcome]struct {
		want    Outcome
		message string
	}{
		Updated:        {NeedsWebhook, "why"},
		Repaired:       {NeedsWebhook, "why"},
		TakenOver:      {TakenOver, "it was theirs; the operator brings its new schema, because why"},
		Unchanged:      {Unchanged, "it was theirs"},
		NotOwned:       {NotOwned, "it was theirs"},
		NewerInCluster: {NewerInCluster, "it was theirs"},
	}
	for outcome, c := range cases {
		if got, message := withoutWebhook(outcome, "it was theirs", "why"); got != c.want || message != c.message {
			t.Errorf("%s becomes %s, %s", outcome, got, message)
		}
	}
}
