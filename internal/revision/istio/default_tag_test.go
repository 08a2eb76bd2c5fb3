package istio

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
	"github.com/fairlead/fairlead/internal/passage"
	"github.com/fairlead/fairlead/internal/revision/usage"
)

// wantsDefaultTag has the Istio ask for the tag.
func (o Observed) wantsDefaultTag() Observed {
	o.Istio.Spec.UpdateStrategy.DefaultTag = true
	return o
}

// defaultTag is there, follows an Istio and has a controller: an Istio by its name and UID, or nobody.
func (o Observed) defaultTag(follows, owner, uid string) Observed {
	tag := &v1.IstioRevisionTag{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	tag.Spec.TargetRef = v1.TargetReference{Kind: v1.IstioKind, Name: follows}
	tag.Status.IstioRevision = "mesh-v1-24-0"
	if owner != "" {
		reference := ownerReference(makeIstio(owner).Istio)
		if uid != "" {
			reference.UID = o.Istio.UID + "-before"
		}
		tag.OwnerReferences = []metav1.OwnerReference{reference}
	}
	o.DefaultTag = tag
	if follows == o.Istio.Name {
		o.Tags = append(o.Tags, *tag)
	}
	return o
}

func (o Observed) deletingDefaultTag() Observed {
	o.DefaultTag.DeletionTimestamp = ptr.To(metav1.NewTime(epoch))
	o.Tags = nil
	return o
}

func TestDefaultTag(t *testing.T) {
	mesh := func() Observed {
		return observed(makeIstio("mesh").revisionBased().active("mesh-v1-24-0"), makeRevision("mesh-v1-24-0", "v1.24.0").of("mesh").ready())
	}
	byShop := usage.Usage{Namespaces: 1, Names: []string{"Namespace shop"}}
	cases := map[string]struct {
		in         Observed
		want       string
		reconciled string
	}{
		"not asked for": {in: mesh()},
		"missing":       {mesh().wantsDefaultTag(), `Pending create IstioRevisionTag default ""->"mesh-v1-24-0" TagMissing`, "False TagMissing"},
		"there":         {in: mesh().wantsDefaultTag().defaultTag("mesh", "mesh", "")},
		"follows another": {
			mesh().wantsDefaultTag().defaultTag("other", "mesh", ""),
			`Pending update IstioRevisionTag default ""->"mesh-v1-24-0" TagDiffers`, "False TagDiffers",
		},
		"being deleted": {
			mesh().wantsDefaultTag().defaultTag("mesh", "mesh", "").deletingDefaultTag(),
			`Running create IstioRevisionTag default ""->"mesh-v1-24-0" NameInDeletion`, "False NameInDeletion",
		},
		"of an Istio of the same name before": {
			mesh().wantsDefaultTag().defaultTag("mesh", "mesh", "before"),
			`Running create IstioRevisionTag default ""->"mesh-v1-24-0" NameInDeletion`, "False NameInDeletion",
		},
		"made by a user, and follows the Istio": {in: mesh().wantsDefaultTag().defaultTag("mesh", "", "")},
		"made by a user, and follows another": {
			mesh().wantsDefaultTag().defaultTag("other", "", ""),
			`Failed create IstioRevisionTag default ""->"mesh-v1-24-0" NameAlreadyExists`, "False NameAlreadyExists",
		},
		"of another Istio": {
			mesh().wantsDefaultTag().defaultTag("other", "other", ""),
			`Failed create IstioRevisionTag default ""->"mesh-v1-24-0" NameAlreadyExists`, "False NameAlreadyExists",
		},
		"name of a revision": {
			func() Observed {
				o := mesh().wantsDefaultTag()
				o.Revisions = append(o.Revisions, makeRevision("default", "v1.24.0").Revision)
				return o.usedBy("default", byShop)
			}(),
			`Failed create IstioRevisionTag default ""->"mesh-v1-24-0" NameAlreadyExists`, "False NameAlreadyExists",
		},
		"name of the active revision": {
			in: observed(makeIstio("default").active("default"), makeRevision("default", "v1.24.0").of("default").ready()).wantsDefaultTag(),
		},
		"taken back": {
			mesh().defaultTag("mesh", "mesh", ""), `Pending delete IstioRevisionTag default "mesh-v1-24-0"->"" TagNotAskedFor`, "",
		},
		"taken back while in use": {
			mesh().defaultTag("mesh", "mesh", "").usedBy("default", byShop),
			`Later delete IstioRevisionTag default "mesh-v1-24-0"->"" InUse`, "",
		},
		"taken back while its users are unknown": {
			mesh().defaultTag("mesh", "mesh", "").usedBy("default", usage.Usage{Forbidden: []string{"pods"}}),
			`Later delete IstioRevisionTag default "mesh-v1-24-0"->"" UsageCheckFailed`, "",
		},
		"taken back and being deleted":    {in: mesh().defaultTag("mesh", "mesh", "").deletingDefaultTag()},
		"never asked for, of a user":      {in: mesh().defaultTag("mesh", "", "")},
		"never asked for, of another one": {in: mesh().defaultTag("other", "other", "")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			plan := Plan(c.in, epoch)
			var got []string
			for _, line := range inShort(plan) {
				if strings.Contains(line, "IstioRevisionTag") {
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(c.want, strings.Join(got, "\n")); diff != "" {
				t.Error(diff)
			}
			want := c.reconciled
			if want == "" {
				want = "True Reconciled"
			}
			condition := reconciled(plan, nil)
			if diff := cmp.Diff(want, string(condition.Status)+" "+condition.Reason); diff != "" {
				t.Errorf("Reconciled: %s", diff)
			}
			// Steps for the tag never keep those of revisions from being applied.
			if plan.Steps[0].Object.Kind != v1.IstioRevisionKind || plan.Steps[0].State != passage.Done {
				t.Errorf("the first step is %v", plan.Steps[0])
			}
		})
	}
}

func TestDefaultTagMessages(t *testing.T) {
	o := observed(makeIstio("mesh").revisionBased(), makeRevision("default", "v1.24.0")).wantsDefaultTag().
		usedBy("default", usage.Usage{Namespaces: 1, Names: []string{"Namespace shop"}})
	want := "the tag that spec.updateStrategy.defaultTag asks for is not created: the name is used by IstioRevision default " +
		"(in use by 1 namespace: Namespace shop); delete that revision, or take defaultTag back"
	if diff := cmp.Diff(want, defaultTagSteps(o, "mesh-v1-24-0")[0].Reason.Message); diff != "" {
		t.Error(diff)
	}
	o = observed(makeIstio("mesh").revisionBased()).wantsDefaultTag().defaultTag("other", "other", "")
	want = "IstioRevisionTag default exists, follows Istio other and was not made by Istio mesh; " +
		"delete the tag, or take spec.updateStrategy.defaultTag back"
	if diff := cmp.Diff(want, defaultTagSteps(o, "mesh-v1-24-0")[0].Reason.Message); diff != "" {
		t.Error(diff)
	}
}
