package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MeshLoadBalancingStrategy is how proxies choose among instances.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=mlbs,categories=kuma
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=fairlead"
// +kubebuilder:printcolumn:name="FOR",type=string,JSONPath=".spec.targetRef.kind",description="Which proxies it is for."
// +kubebuilder:printcolumn:name="NAME-OF-TARGET",type=string,JSONPath=".spec.targetRef.name",description="Name of what it is for."
// +kubebuilder:printcolumn:name="TO",type=string,JSONPath=".status.columns.to",description="The destinations that it names."
// +kubebuilder:printcolumn:name="RESOLVED",type=string,JSONPath=".status.conditions[?(@.type==\"Resolved\")].status",description="Whether it refers to something."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=".metadata.creationTimestamp",description="How long it has existed."
type MeshLoadBalancingStrategy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What it says, and of what.
	// +optional
	Spec MeshLoadBalancingStrategySpec `json:"spec,omitzero"`

	PolicyReport `json:",inline"`
}

// MeshLoadBalancingStrategyList is a list of MeshLoadBalancingStrategys.
//
// +kubebuilder:object:root=true
type MeshLoadBalancingStrategyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MeshLoadBalancingStrategy `json:"items"`
}

// MeshLoadBalancingStrategySpec is what it says, and of what.
type MeshLoadBalancingStrategySpec struct {
	PolicySpec  `json:",inline"`
	ClientRules `json:",inline"`

	// What it says of destinations.
	// +listType=atomic
	// +optional
	To []MeshLoadBalancingStrategyTo `json:"to,omitempty"`
}

func (p *MeshLoadBalancingStrategy) TopLevel() *TargetRef { return p.Spec.TargetRef }

func (p *MeshLoadBalancingStrategy) Entries() []Entry {
	return entriesOf(p.Spec.To, func(to *MeshLoadBalancingStrategyTo) (ToTargetRef, any) { return to.TargetRef, &to.Default })
}

// MeshLoadBalancingStrategyTo is what it says of a destination.
type MeshLoadBalancingStrategyTo struct {
	// The destination.
	// +required
	TargetRef ToTargetRef `json:"targetRef"`

	// What holds for it.
	// +optional
	Default MeshLoadBalancingStrategyConf `json:"default,omitzero"`
}

// MeshLoadBalancingStrategyConf is how a proxy chooses among instances.
type MeshLoadBalancingStrategyConf struct {
	// Which zones and neighbours come first.
	// +optional
	LocalityAwareness *LocalityAwareness `json:"localityAwareness,omitempty"`

	// How it chooses within them.
	// +optional
	LoadBalancer *LoadBalancer `json:"loadBalancer,omitempty"`

	// What requests are told apart by, for RingHash and Maglev. Kept as it is written.
	// +listType=atomic
	// +optional
	HashPolicies []apiextensionsv1.JSON `json:"hashPolicies,omitempty"`
}

// LocalityAwareness is which zones and neighbours come first.
type LocalityAwareness struct {
	// None do.
	// +optional
	Disabled *bool `json:"disabled,omitempty"`

	// Within the own zone.
	// +optional
	LocalZone *LocalZone `json:"localZone,omitempty"`

	// Over zones.
	// +optional
	CrossZone *CrossZone `json:"crossZone,omitempty"`
}

// LocalZone is which neighbours come first within the own zone.
type LocalZone struct {
	// Those that have the same values of these tags, in order.
	// +listType=atomic
	// +optional
	AffinityTags []AffinityTag `json:"affinityTags,omitempty"`
}

// AffinityTag is a tag whose value neighbours share.
type AffinityTag struct {
	// The tag.
	// +kubebuilder:validation:MinLength=1
	// +required
	Key string `json:"key"`

	// How much it weighs.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Weight *int32 `json:"weight,omitempty"`
}

// CrossZone is which zones come first.
type CrossZone struct {
	// Where traffic goes when the own zone has too few healthy instances, in order.
	// +listType=atomic
	// +optional
	Failover []Failover `json:"failover,omitempty"`

	// When that is so.
	// +optional
	FailoverThreshold *FailoverThreshold `json:"failoverThreshold,omitempty"`
}

// Failover is where traffic of some zones goes.
type Failover struct {
	// The zones that it comes from; without it, all.
	// +optional
	From *FailoverFrom `json:"from,omitempty"`

	// Where it goes.
	// +required
	To FailoverTo `json:"to"`
}

// FailoverFrom is where traffic comes from.
type FailoverFrom struct {
	// The zones.
	// +listType=atomic
	// +required
	Zones []string `json:"zones"`
}

// FailoverTo is where traffic goes.
type FailoverTo struct {
	// Any other zone, None, Only these, or AnyExcept these.
	// +kubebuilder:validation:Enum=Any;None;Only;AnyExcept
	// +required
	Type string `json:"type"`

	// The zones.
	// +listType=atomic
	// +optional
	Zones []string `json:"zones,omitempty"`
}

// FailoverThreshold is when a zone has too few healthy instances.
type FailoverThreshold struct {
	// Below this share of them, in percent.
	// +kubebuilder:validation:XIntOrString
	// +required
	Percentage intstr.IntOrString `json:"percentage"`
}

// LoadBalancer is how a proxy chooses among equal instances.
//
// +kubebuilder:pruning:PreserveUnknownFields
type LoadBalancer struct {
	// The way.
	// +kubebuilder:validation:Enum=RoundRobin;LeastRequest;RingHash;Random;Maglev
	// +required
	Type string `json:"type"`

	// More of LeastRequest.
	// +optional
	LeastRequest *LeastRequest `json:"leastRequest,omitempty"`

	// More of RingHash.
	// +optional
	RingHash *RingHash `json:"ringHash,omitempty"`

	// More of Maglev.
	// +optional
	Maglev *Maglev `json:"maglev,omitempty"`
}

// LeastRequest is more of that way to choose.
//
// +kubebuilder:pruning:PreserveUnknownFields
type LeastRequest struct {
	// Among how many it looks for the one with the fewest requests.
	// +kubebuilder:validation:Minimum=2
	// +optional
	ChoiceCount *int32 `json:"choiceCount,omitempty"`
}

// RingHash is more of that way to choose.
type RingHash struct {
	// The function: XXHash or MurmurHash2.
	// +kubebuilder:validation:Enum=XXHash;MurmurHash2
	// +optional
	HashFunction string `json:"hashFunction,omitempty"`

	// How big the ring is at least.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8000000
	// +optional
	MinRingSize *int32 `json:"minRingSize,omitempty"`

	// How big it is at most.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8000000
	// +optional
	MaxRingSize *int32 `json:"maxRingSize,omitempty"`

	// What requests are told apart by. Kept as it is written.
	// +listType=atomic
	// +optional
	HashPolicies []apiextensionsv1.JSON `json:"hashPolicies,omitempty"`
}

// Maglev is more of that way to choose.
type Maglev struct {
	// How big the table is: a prime number.
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=5000011
	// +optional
	TableSize *int32 `json:"tableSize,omitempty"`

	// What requests are told apart by. Kept as it is written.
	// +listType=atomic
	// +optional
	HashPolicies []apiextensionsv1.JSON `json:"hashPolicies,omitempty"`
}
