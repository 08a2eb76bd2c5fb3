package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/internal/adoption/adoptiontest"
)

// A Work has a digest instead of the values of a Secret, and the two make the manifest again.
func TestContentOfSecrets(t *testing.T) {
	for name, c := range map[string]struct {
		object string
		left   bool
	}{
		"a Secret":                  {"Secret v1\ntype: Opaque\ndata: {password: aHVudGVyMg==}", true},
		"one that is not encoded":   {"Secret v1\nstringData: {password: hunter2}\ndata: {user: aHVudGVyMg==}", true},
		"one without values":        {"Secret v1\ntype: Opaque", false},
		"a ConfigMap":               {"ConfigMap v1\ndata: {a: b}", false},
		"a Secret of another group": {"Secret example.com/v1\ndata: {a: b}", false},
	} {
		t.Run(name, func(t *testing.T) {
			object := adoptiontest.Object(t, c.object)
			object.SetAnnotations(map[string]string{"team": "a"})
			content := ContentOf(object)
			rest := WithoutContent(object)
			if left := content != nil; left != c.left || (rest.GetAnnotations()[AnnotationContent] != "") != c.left {
				t.Fatalf("left out: %v, annotations %v", content, rest.GetAnnotations())
			}
			text, err := rest.MarshalJSON()
			if err != nil || strings.Contains(string(text), "hunter2") || strings.Contains(string(text), "aHVudGVyMg") {
				t.Errorf("%s, %v", text, err)
			}
			if diff := cmp.Diff(object, WithContent(rest, content)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(ForMember(object), ForMember(WithContent(rest, content))); diff != "" {
				t.Error(diff)
			}
			if !c.left {
				return
			}
			for name, other := range map[string]map[string]any{"none": nil, "another": {"data": map[string]any{"password": "b3RoZXI="}}} {
				if WithContent(rest, other) != nil {
					t.Errorf("%s is taken for the content", name)
				}
			}
		})
	}
}

// The version of a Secret changes with its values, and tells nothing about them.
func TestVersionOfASecret(t *testing.T) {
	version := func(value, resourceVersion string) string {
		secret := adoptiontest.Object(t, "Secret v1\ndata: {password: "+value+"}")
		secret.SetResourceVersion(resourceVersion)
		v, err := Version(secret)
		if err != nil {
			t.Fatal(err)
		}
		if _, written, err := FromTemplate(secret, ""); err != nil || written != v {
			t.Errorf("got %s and %s, %v", v, written, err)
		}
		return v
	}
	if version("YQ==", "1") != version("Yg==", "1") || version("YQ==", "1") == version("YQ==", "2") {
		t.Error("the version depends on the values themselves, or does not change with them")
	}
}
