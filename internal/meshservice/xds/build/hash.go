package build

import (
	"encoding/json"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// hashPolicy is a hash policy as written.
type hashPolicy struct {
	Type           string      `json:"type"`
	Terminal       bool        `json:"terminal"`
	Header         *hashedName `json:"header"`
	QueryParameter *hashedName `json:"queryParameter"`
	Cookie         *struct {
		hashedName
		TTL  *metav1.Duration `json:"ttl"`
		Path string           `json:"path"`
	} `json:"cookie"`
	Connection *struct {
		SourceIP bool `json:"sourceIP"`
	} `json:"connection"`
	FilterState *struct {
		Key string `json:"key"`
	} `json:"filterState"`
}

type hashedName struct {
	Name string `json:"name"`
}

// hashPolicies returns the hash policies of a RingHash or Maglev load balancer. Unknown ones are left out.
func hashPolicies(conf *kumav1alpha1.MeshLoadBalancingStrategyConf) []*routev3.RouteAction_HashPolicy {
	if conf == nil || conf.LoadBalancer == nil {
		return nil
	}
	var written []apiextensionsv1.JSON
	switch b := conf.LoadBalancer; b.Type {
	case "RingHash":
		if b.RingHash != nil {
			written = b.RingHash.HashPolicies
		}
	case "Maglev":
		if b.Maglev != nil {
			written = b.Maglev.HashPolicies
		}
	default:
		return nil
	}
	var list []*routev3.RouteAction_HashPolicy
	for _, w := range append(conf.HashPolicies[:len(conf.HashPolicies):len(conf.HashPolicies)], written...) {
		var p hashPolicy
		if err := json.Unmarshal(w.Raw, &p); err != nil {
			continue
		}
		if policy := p.policy(); policy != nil && policy.Validate() == nil {
			list = append(list, policy)
		}
	}
	return list
}

func (p hashPolicy) policy() *routev3.RouteAction_HashPolicy {
	policy := &routev3.RouteAction_HashPolicy{Terminal: p.Terminal}
	switch {
	case p.Type == "Header" && p.Header != nil:
		policy.PolicySpecifier = &routev3.RouteAction_HashPolicy_Header_{Header: &routev3.RouteAction_HashPolicy_Header{HeaderName: p.Header.Name}}
	case p.Type == "QueryParameter" && p.QueryParameter != nil:
		policy.PolicySpecifier = &routev3.RouteAction_HashPolicy_QueryParameter_{
			QueryParameter: &routev3.RouteAction_HashPolicy_QueryParameter{Name: p.QueryParameter.Name},
		}
	case p.Type == "Cookie" && p.Cookie != nil:
		policy.PolicySpecifier = &routev3.RouteAction_HashPolicy_Cookie_{Cookie: &routev3.RouteAction_HashPolicy_Cookie{
			Name: p.Cookie.Name, Ttl: duration(p.Cookie.TTL), Path: p.Cookie.Path,
		}}
	case (p.Type == "Connection" || p.Type == "SourceIP") && (p.Connection == nil || p.Connection.SourceIP):
		policy.PolicySpecifier = &routev3.RouteAction_HashPolicy_ConnectionProperties_{
			ConnectionProperties: &routev3.RouteAction_HashPolicy_ConnectionProperties{SourceIp: true},
		}
	case p.Type == "FilterState" && p.FilterState != nil:
		policy.PolicySpecifier = &routev3.RouteAction_HashPolicy_FilterState_{FilterState: &routev3.RouteAction_HashPolicy_FilterState{Key: p.FilterState.Key}}
	default:
		return nil
	}
	return policy
}
