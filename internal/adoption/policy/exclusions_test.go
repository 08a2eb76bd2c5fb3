package policy

import (
	"testing"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

func TestWhatEveryClusterHasIsNotTaken(t *testing.T) {
	for name, c := range map[string]struct {
		resource model.Template
		taken    bool
	}{
		"the authority of the API server":  {model.Template{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "kube-root-ca.crt"}, false},
		"another ConfigMap":                {model.Template{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings"}, true},
		"the account of no account":        {model.Template{APIVersion: "v1", Kind: "ServiceAccount", Namespace: "shop", Name: "default"}, false},
		"another account":                  {model.Template{APIVersion: "v1", Kind: "ServiceAccount", Namespace: "shop", Name: "cart"}, true},
		"the Service of the API server":    {model.Template{APIVersion: "v1", Kind: "Service", Namespace: "default", Name: "kubernetes"}, false},
		"a part of the cluster":            {model.Template{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "kube-system", Name: "coredns"}, false},
		"the token of a cluster":           {model.Template{APIVersion: "v1", Kind: "Secret", Namespace: "karmada-cluster", Name: "west"}, false},
		"what was there before":            {model.Template{APIVersion: "v1", Kind: "Secret", Namespace: "karmada-es-west", Name: "before-cart"}, false},
		"a pod with the account of a hub":  {model.Template{APIVersion: "v1", Kind: "Pod", Namespace: "fairlead-member", Name: "spy"}, false},
		"a namespace of the cluster":       {model.Template{APIVersion: "v1", Kind: "Namespace", Name: "kube-system"}, false},
		"a namespace for a cluster":        {model.Template{APIVersion: "v1", Kind: "Namespace", Name: "karmada-es-west"}, false},
		"a namespace":                      {model.Template{APIVersion: "v1", Kind: "Namespace", Name: "shop"}, true},
		"a policy":                         {model.Template{APIVersion: "policy.karmada.io/v1alpha1", Kind: "PropagationPolicy", Namespace: "shop", Name: "all"}, false},
		"a binding":                        {model.Template{APIVersion: "work.karmada.io/v1alpha2", Kind: "ResourceBinding", Namespace: "shop", Name: "cart-deployment"}, false},
		"a Cluster":                        {model.Template{APIVersion: "cluster.karmada.io/v1alpha1", Kind: "Cluster", Name: "west"}, false},
		"one of that name of another kind": {model.Template{APIVersion: "example.com/v1", Kind: "ConfigMap", Namespace: "shop", Name: "kube-root-ca.crt"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			all := &Policy{Name: "all", Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: c.resource.APIVersion, Kind: c.resource.Kind}}}}
			if taken := Select(c.resource, []*Policy{all}, model.PolicyKey{}) != nil; taken != c.taken {
				t.Errorf("taken: %t", taken)
			}
		})
	}
}
