package snapshot

import (
	"testing"

	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// Who is called at a ClusterIP, or by a name, that several have.
func TestBeats(t *testing.T) {
	service := model.Key{Kind: model.MeshService, Name: "backend", Namespace: "shop", Zone: "east", Mesh: "default", Port: 8080}
	other := service
	other.Zone = "west"
	multi := model.Key{Kind: model.MeshMultiZoneService, Name: "backend", Namespace: "kuma-system", Mesh: "default", Port: 8080}
	tag := model.TagKey("backend_shop_svc_8080")
	for name, c := range map[string]struct {
		first, second model.Key
	}{
		"a MeshService before the tag":                    {service, tag},
		"a MeshMultiZoneService before the tag":           {multi, tag},
		"a MeshService before a MeshMultiZoneService":     {service, multi},
		"of two MeshServices always the same":             {service, other},
		"of two tags always the same":                     {model.TagKey("a"), model.TagKey("b")},
		"a MeshService before a tag that sorts before it": {service, model.TagKey("a")},
	} {
		t.Run(name, func(t *testing.T) {
			if !hasPrecedence(c.first, c.second) || hasPrecedence(c.second, c.first) {
				t.Errorf("%s should beat %s, and never the other way round", c.first, c.second)
			}
		})
	}
}

func TestPortOfTag(t *testing.T) {
	for name, c := range map[string]struct {
		ports []int32
		want  uint32
	}{
		"its only one":  {[]int32{8080}, 8080},
		"that of a tag": {[]int32{70, 8080, 80}, 80},
		"the first":     {[]int32{9000, 8080}, 8080},
	} {
		t.Run(name, func(t *testing.T) {
			if got := portOfTag(&serviceResource{ports: portsOf(c.ports...)}); got != c.want {
				t.Errorf("it is %d, want %d", got, c.want)
			}
		})
	}
}
