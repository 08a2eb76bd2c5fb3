package build

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// Filter is a filter of a route.
type Filter struct {
	Type                   string          `json:"type"`
	RequestHeaderModifier  *HeaderModifier `json:"requestHeaderModifier"`
	ResponseHeaderModifier *HeaderModifier `json:"responseHeaderModifier"`
	RequestRedirect        *Redirect       `json:"requestRedirect"`
	URLRewrite             *Rewrite        `json:"urlRewrite"`
	RequestMirror          *Mirror         `json:"requestMirror"`
}

// HeaderModifier changes headers.
type HeaderModifier struct {
	Set    []Header `json:"set"`
	Add    []Header `json:"add"`
	Remove []string `json:"remove"`
}

// Header is a header with a value.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Redirect answers a request with a redirect.
type Redirect struct {
	Scheme     string       `json:"scheme"`
	Hostname   string       `json:"hostname"`
	Path       *PathRewrite `json:"path"`
	Port       uint32       `json:"port"`
	StatusCode int          `json:"statusCode"`
}

// Rewrite changes the hostname or the path of a request.
type Rewrite struct {
	Hostname string       `json:"hostname"`
	Path     *PathRewrite `json:"path"`
}

// PathRewrite replaces a path, or its matched prefix.
type PathRewrite struct {
	ReplaceFullPath    *string `json:"replaceFullPath"`
	ReplacePrefixMatch *string `json:"replacePrefixMatch"`
}

// Mirror sends a copy of a request to another backend.
type Mirror struct {
	Percentage *intstr.IntOrString     `json:"percentage"`
	BackendRef kumav1alpha1.BackendRef `json:"backendRef"`
	// Cluster is the resolved BackendRef.
	Cluster string `json:"-"`
}

// ReadFilter decodes and checks a filter.
func ReadFilter(written apiextensionsv1.JSON) (Filter, error) {
	var f Filter
	if err := json.Unmarshal(written.Raw, &f); err != nil {
		return f, fmt.Errorf("filter %s: %w", written.Raw, err)
	}
	for name, is := range map[string]bool{
		"RequestHeaderModifier": f.RequestHeaderModifier != nil, "ResponseHeaderModifier": f.ResponseHeaderModifier != nil,
		"RequestRedirect": f.RequestRedirect != nil, "URLRewrite": f.URLRewrite != nil, "RequestMirror": f.RequestMirror != nil,
	} {
		if f.Type == name && is {
			return f, nil
		}
	}
	return f, fmt.Errorf("filter %s is not a known filter", written.Raw)
}

func (f Filter) apply(r *routev3.Route) {
	switch f.Type {
	case "RequestHeaderModifier":
		r.RequestHeadersToAdd = append(r.RequestHeadersToAdd, f.RequestHeaderModifier.added()...)
		r.RequestHeadersToRemove = append(r.RequestHeadersToRemove, f.RequestHeaderModifier.Remove...)
	case "ResponseHeaderModifier":
		r.ResponseHeadersToAdd = append(r.ResponseHeadersToAdd, f.ResponseHeaderModifier.added()...)
		r.ResponseHeadersToRemove = append(r.ResponseHeadersToRemove, f.ResponseHeaderModifier.Remove...)
	case "RequestRedirect":
		r.Action = &routev3.Route_Redirect{Redirect: f.RequestRedirect.action(r.Match)}
	case "URLRewrite":
		if a := r.GetRoute(); a != nil {
			f.URLRewrite.apply(a, r.Match)
		}
	case "RequestMirror":
		if a := r.GetRoute(); a != nil && f.RequestMirror.Cluster != "" {
			a.RequestMirrorPolicies = append(a.RequestMirrorPolicies, f.RequestMirror.policy())
		}
	}
}

func (m *HeaderModifier) added() []*corev3.HeaderValueOption {
	var list []*corev3.HeaderValueOption
	add := func(headers []Header, how corev3.HeaderValueOption_HeaderAppendAction) {
		for _, h := range headers {
			list = append(list, &corev3.HeaderValueOption{Header: &corev3.HeaderValue{Key: h.Name, Value: h.Value}, AppendAction: how})
		}
	}
	add(m.Set, corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD)
	add(m.Add, corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD)
	return list
}

func (d *Redirect) action(match *routev3.RouteMatch) *routev3.RedirectAction {
	a := &routev3.RedirectAction{HostRedirect: d.Hostname, PortRedirect: d.Port}
	if d.Scheme != "" {
		a.SchemeRewriteSpecifier = &routev3.RedirectAction_SchemeRedirect{SchemeRedirect: d.Scheme}
	}
	switch {
	case d.Path == nil:
	case d.Path.ReplaceFullPath != nil:
		a.PathRewriteSpecifier = &routev3.RedirectAction_PathRedirect{PathRedirect: *d.Path.ReplaceFullPath}
	case d.Path.ReplacePrefixMatch != nil:
		a.PathRewriteSpecifier = &routev3.RedirectAction_PrefixRewrite{PrefixRewrite: replacePrefix(*d.Path.ReplacePrefixMatch, match)}
	}
	a.ResponseCode = map[int]routev3.RedirectAction_RedirectResponseCode{
		301: routev3.RedirectAction_MOVED_PERMANENTLY, 302: routev3.RedirectAction_FOUND, 303: routev3.RedirectAction_SEE_OTHER,
		307: routev3.RedirectAction_TEMPORARY_REDIRECT, 308: routev3.RedirectAction_PERMANENT_REDIRECT,
	}[cmp.Or(d.StatusCode, 302)]
	return a
}

func (w *Rewrite) apply(a *routev3.RouteAction, match *routev3.RouteMatch) {
	if w.Hostname != "" {
		a.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteLiteral{HostRewriteLiteral: w.Hostname}
	}
	switch {
	case w.Path == nil:
	case w.Path.ReplaceFullPath != nil:
		a.RegexRewrite = &matcherv3.RegexMatchAndSubstitute{
			Pattern: &matcherv3.RegexMatcher{Regex: ".*"}, Substitution: *w.Path.ReplaceFullPath,
		}
	case w.Path.ReplacePrefixMatch != nil:
		a.PrefixRewrite = replacePrefix(*w.Path.ReplacePrefixMatch, match)
	}
}

// replacePrefix returns the replacement of a prefix match, with a slash where the match ends in one.
func replacePrefix(replacement string, match *routev3.RouteMatch) string {
	if replacement = strings.TrimSuffix(replacement, "/"); match.GetPrefix() != "" || replacement == "" {
		replacement += "/"
	}
	return replacement
}

func (m *Mirror) policy() *routev3.RouteAction_RequestMirrorPolicy {
	p := &routev3.RouteAction_RequestMirrorPolicy{Cluster: m.Cluster}
	if m.Percentage != nil {
		var percent float64
		if _, err := fmt.Sscanf(m.Percentage.String(), "%g", &percent); err == nil && percent >= 0 && percent <= 100 {
			p.RuntimeFraction = &corev3.RuntimeFractionalPercent{DefaultValue: &typev3.FractionalPercent{
				Numerator: uint32(percent * 10000), Denominator: typev3.FractionalPercent_MILLION,
			}}
		}
	}
	return p
}
