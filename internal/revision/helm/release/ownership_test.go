package release

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// object reads YAML.
func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	objects, err := decode(text)
	if err != nil || len(objects) != 1 {
		t.Fatalf("%d objects, %v in:\n%s", len(objects), err, text)
	}
	return objects[0]
}

func TestStamp(t *testing.T) {
	owner := &metav1.OwnerReference{APIVersion: "sailoperator.io/v1", Kind: "IstioRevision", Name: "default", UID: "1", Controller: new(bool)}
	*owner.Controller = true
	tests := map[string]struct {
		given string
		owner *metav1.OwnerReference
		want  string
	}{
		"bare, with an owner": {
			given: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`,
			owner: owner,
			want: `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  labels: {fairlead.dev/passage: revision, app.kubernetes.io/managed-by: Helm}
  annotations: {meta.helm.sh/release-name: harbour, meta.helm.sh/release-namespace: sea}
  ownerReferences: [{apiVersion: sailoperator.io/v1, kind: IstioRevision, name: default, uid: "1", controller: true}]`,
		},
		"labelled and annotated, without an owner": {
			given: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {a: b}, annotations: {c: d}}}`,
			want: `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  labels: {a: b, fairlead.dev/passage: revision, app.kubernetes.io/managed-by: Helm}
  annotations: {c: d, meta.helm.sh/release-name: harbour, meta.helm.sh/release-namespace: sea}`,
		},
		"to be kept": {
			given: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {helm.sh/resource-policy: keep}}}`,
			owner: owner,
			want: `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  labels: {fairlead.dev/passage: revision, app.kubernetes.io/managed-by: Helm}
  annotations: {helm.sh/resource-policy: keep, meta.helm.sh/release-name: harbour, meta.helm.sh/release-namespace: sea}`,
		},
		"a CRD that does not say so": {
			given: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}}`,
			owner: owner,
			want: `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: a
  labels: {fairlead.dev/passage: revision, app.kubernetes.io/managed-by: Helm}
  annotations: {meta.helm.sh/release-name: harbour, meta.helm.sh/release-namespace: sea}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := object(t, tc.given)
			setOwnership(got, types.NamespacedName{Namespace: "sea", Name: "harbour"}, tc.owner)
			var want map[string]any
			if err := yaml.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got.Object); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestBelongs(t *testing.T) {
	made := `{apiVersion: v1, kind: ConfigMap, metadata: {name: a,
  annotations: {meta.helm.sh/release-name: harbour, meta.helm.sh/release-namespace: sea},
  ownerReferences: [{apiVersion: sailoperator.io/v1, kind: IstioRevision, name: o, uid: "1", controller: true}]}}`
	tests := map[string]struct {
		live   string
		want   bool
		holder string
	}{
		"the same": {made, true, "Helm release sea/harbour"},
		"of another release of the same owner": {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a,
  annotations: {meta.helm.sh/release-name: harbour, meta.helm.sh/release-namespace: lake},
  ownerReferences: [{apiVersion: sailoperator.io/v1, kind: IstioRevision, name: o, uid: "1", controller: true}]}}`, false, "Helm release lake/harbour"},
		"of the same owner alone": {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a,
  ownerReferences: [{apiVersion: sailoperator.io/v1, kind: IstioRevision, name: o, uid: "1", controller: true}]}}`, true, "IstioRevision o"},
		"of a namesake of the owner": {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a,
  ownerReferences: [{apiVersion: sailoperator.io/v1, kind: IstioRevision, name: o, uid: "2", controller: true}]}}`, false, "IstioRevision o"},
		"of nobody": {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`, false, "no release"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			live := object(t, tc.live)
			if got := isOwnedBy(live, object(t, made)); got != tc.want {
				t.Errorf("belongs: %t, want %t", got, tc.want)
			}
			if got := holder(live); got != tc.holder {
				t.Errorf("holder: %s, want %s", got, tc.holder)
			}
		})
	}
}

// TestForgedController: who forges a record cannot have the operator delete what the record says is of the same controller.
func TestForgedController(t *testing.T) {
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {LABELS},
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: "1", controller: true}]}}`
	live, recorded := object(t, strings.ReplaceAll(pod, "LABELS", "app: a")), object(t, strings.ReplaceAll(pod, "LABELS", "fairlead.dev/passage: revision"))
	if isOwnedBy(live, recorded) || isInherited(live, recorded) {
		t.Error("a pod of a ReplicaSet is taken for an object of a release")
	}
}

// TestInherited: what another controller has made for the same owner is taken over, whatever its release.
func TestInherited(t *testing.T) {
	const metadata = `{name: a, annotations: {meta.helm.sh/release-name: NAME, meta.helm.sh/release-namespace: sea}, labels: {LABELS},
  ownerReferences: [{apiVersion: sailoperator.io/v1, kind: IstioRevision, name: o, uid: "UID", controller: true}]}`
	made := func(name, uid, labels string) string {
		return "{apiVersion: v1, kind: ConfigMap, metadata: " + strings.NewReplacer("NAME", name, "UID", uid, "LABELS", labels).Replace(metadata) + "}"
	}
	for name, tc := range map[string]struct {
		live string
		want bool
	}{
		"of another controller, for the same owner":   {made("theirs", "1", "managed-by: sail-operator"), true},
		"of another release of Fairlead":              {made("theirs", "1", "fairlead.dev/passage: revision"), false},
		"of another controller, for another owner":    {made("theirs", "2", ""), false},
		"of another controller, for no owner that is": {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isInherited(object(t, tc.live), object(t, made("harbour", "1", ""))); got != tc.want {
				t.Errorf("inherited: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestBrief(t *testing.T) {
	if got := truncate("a\n\tb  c\n"); got != "a b c" {
		t.Errorf("got %q", got)
	}
	if got := truncate(strings.Repeat("ä", 2*maxErrorLength)); len([]rune(got)) != maxErrorLength || !strings.HasSuffix(got, "ä…") {
		t.Errorf("got %d characters", len([]rune(got)))
	}
}
