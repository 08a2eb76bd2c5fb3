package adoption

import (
	"testing"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
)

func TestWhatEveryClusterHasIsNotTaken(t *testing.T) {
	for name, c := range map[string]struct {
		resource Template
		taken    bool
	}{
		"the authority of the API server":  {Template{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "kube-root-ca.crt"}, false},
		"another ConfigMap":                {Template{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings"}, true},
		"the account of no account":        {Template{APIVersion: "v1", Kind: "ServiceAccount", Namespace: "shop", Name: "default"}, false},
		"another account":                  {Template{APIVersion: "v1", Kind: "ServiceAccount", Namespace: "shop", Name: "cart"}, true},
		"the Service of the API server":    {Template{APIVersion: "v1", Kind: "Service", Namespace: "default", Name: "kubernetes"}, false},
		"a part of the cluster":            {Template{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "kube-system", Name: "coredns"}, false},
		"the token of a cluster":           {Template{APIVersion: "v1", Kind: "Secret", Namespace: "karmada-cluster", Name: "west"}, false},
		"what was there before":            {Template{APIVersion: "v1", Kind: "Secret", Namespace: "karmada-es-west", Name: "before-cart"}, false},
		"a pod with the account of a hub":  {Template{APIVersion: "v1", Kind: "Pod", Namespace: "fairlead-member", Name: "spy"}, false},
		"a namespace of the cluster":       {Template{APIVersion: "v1", Kind: "Namespace", Name: "kube-system"}, false},
		"a namespace for a cluster":        {Template{APIVersion: "v1", Kind: "Namespace", Name: "karmada-es-west"}, false},
		"a namespace":                      {Template{APIVersion: "v1", Kind: "Namespace", Name: "shop"}, true},
		"one of that name of another kind": {Template{APIVersion: "example.com/v1", Kind: "ConfigMap", Namespace: "shop", Name: "kube-root-ca.crt"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			all := &Policy{Name: "all", Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: c.resource.APIVersion, Kind: c.resource.Kind}}}}
			if taken := choose(c.resource, []*Policy{all}, Key{}) != nil; taken != c.taken {
				t.Errorf("taken: %t", taken)
			}
		})
	}
}
