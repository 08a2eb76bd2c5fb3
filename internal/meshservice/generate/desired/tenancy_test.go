package desired

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

func TestOverreach(t *testing.T) {
	universal := onKubernetes
	universal.Environment = Universal
	serves := func(service string) map[string]string { return map[string]string{kumav1alpha1.TagService: service} }
	for name, c := range map[string]struct {
		where     ZoneInfo
		namespace string
		tags      map[string]string
		want      string
	}{
		"its own":                 {onKubernetes, "shop", serves("backend_shop_svc_80"), ""},
		"another's":               {onKubernetes, "bank", serves("backend_shop_svc_80"), kumav1alpha1.TagService},
		"of the owner":            {onKubernetes, onKubernetes.SystemNamespace, serves("backend_shop_svc_80"), ""},
		"of nobody":               {onKubernetes, "bank", serves("backend"), ""},
		"without a service":       {onKubernetes, "bank", nil, ""},
		"in universal":            {universal, "bank", serves("backend_shop_svc_80"), ""},
		"its own namespace":       {onKubernetes, "shop", map[string]string{kumav1alpha1.LabelKubernetesNamespace: "shop"}, ""},
		"another's namespace":     {onKubernetes, "bank", map[string]string{kumav1alpha1.LabelKubernetesNamespace: "shop"}, kumav1alpha1.LabelKubernetesNamespace},
		"a namespace of the mesh": {onKubernetes, onKubernetes.SystemNamespace, map[string]string{kumav1alpha1.LabelKubernetesNamespace: "shop"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dataplane := &kumav1alpha1.Dataplane{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "one"}}
			dataplane.Spec.Networking.Inbound = []kumav1alpha1.Inbound{{Port: 80, Tags: c.tags}}
			tag, namespace := ForeignTag(dataplane, c.tags, c.where)
			if tag != c.want || (namespace == "shop") != (c.want != "") {
				t.Errorf("it claims %q of namespace %q, want %q", tag, namespace, c.want)
			}
			service := c.tags[kumav1alpha1.TagService]
			if got := len(ServicesOf(dataplane, c.where)) == 1; got != (service != "" && c.want == "") {
				t.Errorf("that it serves %q is %t", service, got)
			}
			selecting := &kumav1alpha1.MeshService{ObjectMeta: metav1.ObjectMeta{Namespace: onKubernetes.SystemNamespace}, Spec: kumav1alpha1.MeshServiceSpec{Selector: kumav1alpha1.MeshServiceSelector{DataplaneTags: c.tags}}}
			if got, _, _ := Serves(selecting, dataplane, c.where); got != (len(c.tags) > 0 && c.want == "") {
				t.Errorf("that it is one of a MeshService by these tags is %t", got)
			}
		})
	}
}

// A MeshService of a tenant leads to his own instances only.
func TestForeign(t *testing.T) {
	universal := onKubernetes
	universal.Environment = Universal
	system := onKubernetes.SystemNamespace
	app := map[string]string{"app": "backend"}
	for name, c := range map[string]struct {
		where           ZoneInfo
		service, of     string
		tags            map[string]string
		serves, foreign bool
	}{
		"his own":                         {onKubernetes, "shop", "shop", nil, true, false},
		"another's":                       {onKubernetes, "shop", "bank", nil, false, true},
		"another's with other tags":       {onKubernetes, "shop", "bank", map[string]string{"app": "other"}, false, false},
		"of the owner, for him":           {onKubernetes, "shop", system, map[string]string{kumav1alpha1.LabelKubernetesNamespace: "shop"}, true, false},
		"of the owner, for his service":   {onKubernetes, "shop", system, map[string]string{kumav1alpha1.TagService: "backend_shop_svc_80"}, true, false},
		"of the owner, for nobody":        {onKubernetes, "shop", system, nil, false, true},
		"the owner's of anybody":          {onKubernetes, system, "bank", nil, true, false},
		"in universal":                    {universal, "shop", "bank", nil, true, false},
		"another's that says to be his":   {onKubernetes, "shop", "bank", map[string]string{kumav1alpha1.LabelKubernetesNamespace: "shop"}, false, false},
		"his own that says to be another": {onKubernetes, "shop", "shop", map[string]string{kumav1alpha1.LabelKubernetesNamespace: "bank"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			tags := maps.Clone(app)
			maps.Copy(tags, c.tags)
			dataplane := &kumav1alpha1.Dataplane{ObjectMeta: metav1.ObjectMeta{Namespace: c.of, Name: "one"}}
			dataplane.Spec.Networking.Inbound = []kumav1alpha1.Inbound{{Port: 80, Tags: tags}}
			service := &kumav1alpha1.MeshService{ObjectMeta: metav1.ObjectMeta{Namespace: c.service, Name: "backend"}}
			service.Spec.Selector.DataplaneTags = app
			if serves, _, foreign := Serves(service, dataplane, c.where); serves != c.serves || foreign != c.foreign {
				t.Errorf("it serves: %t, and is foreign: %t", serves, foreign)
			}
		})
	}
}
