package desired

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// A tenant serves only what is of the namespace, or what the Namespace allows.
func TestRefusedTag(t *testing.T) {
	allowing := RulesOf(&metav1.ObjectMeta{Name: "bank", Annotations: map[string]string{kumav1alpha1.AnnotationAllowedServices: "payments, backend_shop_svc_80"}})
	universal := onKubernetes
	universal.Environment = Universal
	serves := func(service string) map[string]string { return map[string]string{kumav1alpha1.TagService: service} }
	for name, c := range map[string]struct {
		where     ZoneInfo
		namespace string
		tags      map[string]string
		rules     NamespaceRules
		want      string
	}{
		"its own":                 {where: onKubernetes, namespace: "shop", tags: serves("backend_shop_svc_80")},
		"its own without a port":  {where: onKubernetes, namespace: "shop", tags: serves("cart_shop_svc")},
		"another's":               {where: onKubernetes, namespace: "bank", tags: serves("backend_shop_svc_80"), want: kumav1alpha1.TagService},
		"another's, no port":      {where: onKubernetes, namespace: "bank", tags: serves("cart_shop_svc"), want: kumav1alpha1.TagService},
		"another's, allowed":      {where: onKubernetes, namespace: "bank", tags: serves("backend_shop_svc_80"), rules: allowing},
		"of the owner":            {where: onKubernetes, namespace: onKubernetes.SystemNamespace, tags: serves("backend_shop_svc_80")},
		"of a universal zone":     {where: onKubernetes, namespace: "bank", tags: serves("payments"), want: kumav1alpha1.TagService},
		"of a zone, allowed":      {where: onKubernetes, namespace: "bank", tags: serves("payments"), rules: allowing},
		"of a zone, not allowed":  {where: onKubernetes, namespace: "bank", tags: serves("orders"), rules: allowing, want: kumav1alpha1.TagService},
		"without a service":       {where: onKubernetes, namespace: "bank"},
		"in universal":            {where: universal, namespace: "bank", tags: serves("backend_shop_svc_80")},
		"its own namespace":       {where: onKubernetes, namespace: "shop", tags: map[string]string{kumav1alpha1.LabelKubernetesNamespace: "shop"}},
		"another's namespace":     {where: onKubernetes, namespace: "bank", tags: map[string]string{kumav1alpha1.LabelKubernetesNamespace: "shop"}, want: kumav1alpha1.LabelKubernetesNamespace},
		"a namespace of the mesh": {where: onKubernetes, namespace: onKubernetes.SystemNamespace, tags: map[string]string{kumav1alpha1.LabelKubernetesNamespace: "shop"}},
		"allowed, in another's": {
			where: onKubernetes, namespace: "bank", rules: allowing, want: kumav1alpha1.LabelKubernetesNamespace,
			tags: map[string]string{kumav1alpha1.TagService: "payments", kumav1alpha1.LabelKubernetesNamespace: "shop"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dataplane := &kumav1alpha1.Dataplane{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "one"}}
			dataplane.Spec.Networking.Inbound = []kumav1alpha1.Inbound{{Port: 80, Tags: c.tags}}
			if tag := RefusedTag(dataplane, c.tags, c.rules, c.where); tag != c.want {
				t.Errorf("%q is refused, want %q", tag, c.want)
			}
			refusals := RefusalsOf(dataplane, c.rules, c.where)
			if len(refusals) > 0 != (c.want != "") || len(refusals) > 0 && refusals[0].Field != "spec.networking.inbound[0].tags["+c.want+"]" {
				t.Errorf("refused is %+v", refusals)
			}
			service := c.tags[kumav1alpha1.TagService]
			if got := len(ServicesOf(dataplane, c.rules, c.where)) == 1; got != (service != "" && c.want == "") {
				t.Errorf("that it serves %q is %t", service, got)
			}
			selecting := &kumav1alpha1.MeshService{ObjectMeta: metav1.ObjectMeta{Namespace: onKubernetes.SystemNamespace}, Spec: kumav1alpha1.MeshServiceSpec{Selector: kumav1alpha1.MeshServiceSelector{DataplaneTags: c.tags}}}
			if got, _, _ := Serves(selecting, dataplane, c.rules, c.where); got != (len(c.tags) > 0 && c.want == "") {
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
			if serves, _, foreign := Serves(service, dataplane, NamespaceRules{}, c.where); serves != c.serves || foreign != c.foreign {
				t.Errorf("it serves: %t, and is foreign: %t", serves, foreign)
			}
		})
	}
}
