package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MeshHTTPRoute is where proxies send HTTP requests.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=kuma
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=fairlead"
// +kubebuilder:printcolumn:name="FOR",type=string,JSONPath=".spec.targetRef.kind",description="Which proxies it is for."
// +kubebuilder:printcolumn:name="NAME-OF-TARGET",type=string,JSONPath=".spec.targetRef.name",description="Name of what it is for."
// +kubebuilder:printcolumn:name="TO",type=string,JSONPath=".status.columns.to",description="The destinations that it names."
// +kubebuilder:printcolumn:name="RESOLVED",type=string,JSONPath=".status.conditions[?(@.type==\"Resolved\")].status",description="Whether it refers to something."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has existed."
type MeshHTTPRoute struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What it says, and of what.
	// +optional
	Spec MeshHTTPRouteSpec `json:"spec,omitzero"`

	PolicyReport `json:",inline"`
}

// MeshHTTPRouteList is a list of MeshHTTPRoutes.
//
// +kubebuilder:object:root=true
type MeshHTTPRouteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MeshHTTPRoute `json:"items"`
}

// MeshHTTPRouteSpec is what it says, and of what.
type MeshHTTPRouteSpec struct {
	PolicySpec `json:",inline"`

	// What it says of destinations.
	// +listType=atomic
	// +optional
	To []MeshHTTPRouteTo `json:"to,omitempty"`
}

func (p *MeshHTTPRoute) TopLevel() *TargetRef { return p.Spec.TargetRef }

func (p *MeshHTTPRoute) Entries() []Entry {
	return entriesOf(p.Spec.To, func(to *MeshHTTPRouteTo) (ToTargetRef, any) { return to.TargetRef, to })
}

// MeshHTTPRouteTo is where requests for a destination go instead.
type MeshHTTPRouteTo struct {
	// The destination.
	// +required
	TargetRef ToTargetRef `json:"targetRef"`

	// Only requests for these hosts; without it, all.
	// +listType=atomic
	// +optional
	Hostnames []string `json:"hostnames,omitempty"`

	// Which requests go where. The closest match counts, wherever it stands: an exact path before a pattern, a longer prefix
	// before a shorter one.
	// +listType=atomic
	// +optional
	Rules []HTTPRule `json:"rules,omitempty"`
}

// HTTPRule is where some requests go.
type HTTPRule struct {
	// Which requests: those that match any.
	// +listType=atomic
	// +optional
	Matches []HTTPMatch `json:"matches,omitempty"`

	// What becomes of them.
	// +optional
	Default HTTPRuleDefault `json:"default,omitzero"`
}

// HTTPMatch is which requests match: those of which all holds.
type HTTPMatch struct {
	// The path.
	// +optional
	Path *PathMatch `json:"path,omitempty"`

	// The method.
	// +kubebuilder:validation:Enum=CONNECT;DELETE;GET;HEAD;OPTIONS;PATCH;POST;PUT;TRACE
	// +optional
	Method string `json:"method,omitempty"`

	// Headers.
	// +listType=atomic
	// +optional
	Headers []HeaderMatch `json:"headers,omitempty"`

	// Parameters of the query.
	// +listType=atomic
	// +optional
	QueryParams []QueryParamMatch `json:"queryParams,omitempty"`
}

// PathMatch is which paths match.
type PathMatch struct {
	// How it is compared.
	// +kubebuilder:validation:Enum=Exact;PathPrefix;RegularExpression
	// +required
	Type string `json:"type"`

	// What with.
	// +kubebuilder:validation:MinLength=1
	// +required
	Value string `json:"value"`
}

// HeaderMatch is which headers match.
type HeaderMatch struct {
	// How it is compared; without it, Exact.
	// +kubebuilder:validation:Enum=Exact;Present;RegularExpression;Absent;Prefix
	// +optional
	Type string `json:"type,omitempty"`

	// The header.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`

	// What its value is compared with.
	// +optional
	Value string `json:"value,omitempty"`
}

// QueryParamMatch is which parameters match.
type QueryParamMatch struct {
	// How it is compared; without it, Exact.
	// +kubebuilder:validation:Enum=Exact;RegularExpression
	// +optional
	Type string `json:"type,omitempty"`

	// The parameter.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`

	// What its value is compared with.
	// +required
	Value string `json:"value"`
}

// HTTPRuleDefault is what becomes of requests.
type HTTPRuleDefault struct {
	// What is done to them on their way. Kept as it is written.
	// +listType=atomic
	// +optional
	Filters []apiextensionsv1.JSON `json:"filters,omitempty"`

	// Where they go; without it, to the destination.
	// +listType=atomic
	// +optional
	BackendRefs []BackendRef `json:"backendRefs,omitempty"`
}
