package build

import (
	"fmt"
	"regexp/syntax"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// routeMatches returns the Envoy matches of a match.
func routeMatches(m kumav1alpha1.HTTPMatch) ([]*routev3.RouteMatch, error) {
	var headers []*routev3.HeaderMatcher
	if m.Method != "" {
		headers = append(headers, header(":method", exactMatcher(m.Method)))
	}
	for _, h := range m.Headers {
		matcher, err := headerMatch(h)
		if err != nil {
			return nil, err
		}
		headers = append(headers, matcher)
	}
	var parameters []*routev3.QueryParameterMatcher
	for _, p := range m.QueryParams {
		matcher, err := stringMatcher(p.Type, p.Value)
		if err != nil {
			return nil, err
		}
		parameters = append(parameters, &routev3.QueryParameterMatcher{
			Name: p.Name, QueryParameterMatchSpecifier: &routev3.QueryParameterMatcher_StringMatch{StringMatch: matcher},
		})
	}
	list, err := pathMatches(m.Path)
	for _, match := range list {
		match.Headers, match.QueryParameters = headers, parameters
	}
	return list, err
}

// pathMatches returns the Envoy matches of a path. A prefix matches the path itself and everything below it; not all
// clients support path_separated_prefix.
func pathMatches(p *kumav1alpha1.PathMatch) ([]*routev3.RouteMatch, error) {
	exact := func(path string) *routev3.RouteMatch {
		return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Path{Path: path}}
	}
	switch {
	case p == nil:
		return []*routev3.RouteMatch{matchAll()}, nil
	case p.Type == "Exact":
		return []*routev3.RouteMatch{exact(p.Value)}, nil
	case p.Type == "RegularExpression":
		regex, err := checkRegex(p.Value)
		if err != nil {
			return nil, err
		}
		return []*routev3.RouteMatch{{PathSpecifier: &routev3.RouteMatch_SafeRegex{SafeRegex: regex}}}, nil
	}
	prefix := strings.TrimSuffix(p.Value, "/")
	if prefix == "" {
		return []*routev3.RouteMatch{matchAll()}, nil
	}
	return []*routev3.RouteMatch{exact(prefix), {PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: prefix + "/"}}}, nil
}

func headerMatch(h kumav1alpha1.HeaderMatch) (*routev3.HeaderMatcher, error) {
	if h.Type == "Present" || h.Type == "Absent" {
		return &routev3.HeaderMatcher{
			Name:                 h.Name,
			HeaderMatchSpecifier: &routev3.HeaderMatcher_PresentMatch{PresentMatch: h.Type == "Present"},
		}, nil
	}
	value, err := stringMatcher(h.Type, h.Value)
	return header(h.Name, value), err
}

func header(name string, value *matcherv3.StringMatcher) *routev3.HeaderMatcher {
	return &routev3.HeaderMatcher{Name: name, HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: value}}
}

func exactMatcher(value string) *matcherv3.StringMatcher {
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: value}}
}

func stringMatcher(kind, value string) (*matcherv3.StringMatcher, error) {
	switch kind {
	case "RegularExpression":
		regex, err := checkRegex(value)
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: regex}}, err
	case "Prefix":
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: value}}, nil
	}
	return exactMatcher(value), nil
}

// Limits of a regular expression: of its text, in bytes, and of the steps that it is compiled to. Envoy rejects some 130,000.
const (
	maxRegexText  = 1024
	maxRegexSteps = 50_000
)

// checkRegex validates a regular expression: one invalid expression makes a proxy reject all routes of a destination. It is
// not compiled, since a short one may fill much memory.
func checkRegex(text string) (*matcherv3.RegexMatcher, error) {
	if len(text) > maxRegexText {
		return nil, fmt.Errorf("regular expression %.40q... has %d bytes, more than %d", text, len(text), maxRegexText)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%.100q is not a valid regular expression: %w", text, err)
	}
	if steps := regexSteps(parsed); steps > maxRegexSteps {
		return nil, fmt.Errorf("regular expression %.40q... repeats too much: it has %d steps, more than %d", text, steps, maxRegexSteps)
	}
	return &matcherv3.RegexMatcher{Regex: text}, nil
}

// regexSteps is about how many steps a regular expression is compiled to.
func regexSteps(r *syntax.Regexp) int {
	steps := 1 + len(r.Rune)
	if r.Op == syntax.OpCharClass {
		steps = 1 + len(r.Rune)/2 // ranges
	}
	for _, part := range r.Sub {
		steps += regexSteps(part)
	}
	if r.Op == syntax.OpRepeat {
		steps *= max(r.Min, r.Max, 1)
	}
	return steps
}
