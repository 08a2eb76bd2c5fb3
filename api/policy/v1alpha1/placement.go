package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Placement is which clusters resources go to, and how many replicas each gets.
type Placement struct {
	// The clusters; all, if it is left out.
	// +optional
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`

	// Groups of clusters, in the order of preference: the first group with clusters that fit is used. Not together with
	// clusterAffinity.
	// +optional
	ClusterAffinities []ClusterAffinityTerm `json:"clusterAffinities,omitempty"`

	// Taints of clusters that the resources tolerate.
	// +optional
	ClusterTolerations []corev1.Toleration `json:"clusterTolerations,omitempty"`

	// How many clusters, regions, zones or providers the resources are spread over.
	// +optional
	SpreadConstraints []SpreadConstraint `json:"spreadConstraints,omitempty"`

	// How replicas are spread. The same number everywhere, if it is left out.
	// +optional
	ReplicaScheduling *ReplicaScheduling `json:"replicaScheduling,omitempty"`

	// Which workloads go to the same clusters, or to different ones. Not supported.
	// +optional
	WorkloadAffinity *WorkloadAffinity `json:"workloadAffinity,omitempty"`
}

// Divides tells whether each cluster gets a part of the replicas.
func (p *Placement) Divides() bool {
	return p.ReplicaScheduling != nil && p.ReplicaScheduling.ReplicaSchedulingType == ReplicasDivided
}

// DividesByRoom tells whether each cluster gets a part of the replicas by the room that it reports.
func (p *Placement) DividesByRoom() bool {
	return p.Divides() && p.ReplicaScheduling.WeightPreference != nil && p.ReplicaScheduling.WeightPreference.DynamicWeight == WeightByAvailableReplicas
}

// ClusterAffinity selects clusters. All that is given has to hold.
type ClusterAffinity struct {
	// Labels of the clusters.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// Provider, region and zone of the clusters.
	// +optional
	FieldSelector *FieldSelector `json:"fieldSelector,omitempty"`

	// Names of the clusters.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`

	// Names of clusters that are not meant, whatever else is said.
	// +optional
	ExcludeClusters []string `json:"exclude,omitempty"`
}

// ClusterAffinityTerm is a named group of clusters.
type ClusterAffinityTerm struct {
	// Name of the group.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +required
	AffinityName string `json:"affinityName"`

	ClusterAffinity `json:",inline"`
}

// FieldSelector selects clusters by fields of their spec.
type FieldSelector struct {
	// The requirements; all have to hold. The key is provider, region or zone, the operator In or NotIn.
	// +optional
	MatchExpressions []corev1.NodeSelectorRequirement `json:"matchExpressions,omitempty"`
}

// SpreadConstraint is over how many groups of clusters resources are spread.
type SpreadConstraint struct {
	// What makes a group: the clusters of a provider, of a region, of a zone, or each cluster by itself.
	// +kubebuilder:validation:Enum=cluster;region;zone;provider
	// +optional
	SpreadByField SpreadField `json:"spreadByField,omitempty"`

	// A label of clusters that makes groups. Not supported.
	// +optional
	SpreadByLabel string `json:"spreadByLabel,omitempty"`

	// The largest number of groups. Without it, or with 0, any.
	// +optional
	MaxGroups int `json:"maxGroups,omitempty"`

	// The smallest number of groups, 1 if it is left out.
	// +optional
	MinGroups int `json:"minGroups,omitempty"`
}

// SpreadField is what makes a group of clusters.
type SpreadField string

// The fields that make groups.
const (
	SpreadByCluster  SpreadField = "cluster"
	SpreadByRegion   SpreadField = "region"
	SpreadByZone     SpreadField = "zone"
	SpreadByProvider SpreadField = "provider"
)

// ReplicaScheduling is how replicas are spread over clusters.
type ReplicaScheduling struct {
	// Duplicated gives every cluster as many as the resource has, Divided spreads them.
	// +kubebuilder:validation:Enum=Duplicated;Divided
	// +kubebuilder:default=Divided
	// +optional
	ReplicaSchedulingType ReplicaSchedulingType `json:"replicaSchedulingType,omitempty"`

	// How they are divided: Weighted, by weights. Aggregated, into as few clusters as possible, is not supported.
	// +kubebuilder:validation:Enum=Aggregated;Weighted
	// +kubebuilder:default=Weighted
	// +optional
	ReplicaDivisionPreference ReplicaDivisionPreference `json:"replicaDivisionPreference,omitempty"`

	// The weights. Without any, all clusters weigh the same.
	// +optional
	WeightPreference *ClusterPreferences `json:"weightPreference,omitempty"`
}

// ReplicaSchedulingType is how replicas are spread.
type ReplicaSchedulingType string

// The ways to spread replicas.
const (
	ReplicasDuplicated ReplicaSchedulingType = "Duplicated"
	ReplicasDivided    ReplicaSchedulingType = "Divided"
)

// ReplicaDivisionPreference is how replicas are divided.
type ReplicaDivisionPreference string

// The ways to divide replicas.
const (
	DivideAggregated ReplicaDivisionPreference = "Aggregated"
	DivideWeighted   ReplicaDivisionPreference = "Weighted"
)

// ClusterPreferences are weights of clusters.
type ClusterPreferences struct {
	// Weights of the clusters that each of these selects. A cluster that none selects gets no replica.
	// +optional
	StaticWeightList []StaticClusterWeight `json:"staticWeightList,omitempty"`

	// AvailableReplicas: clusters weigh as many replicas as they have room for. The static weights then do not count.
	// +kubebuilder:validation:Enum=AvailableReplicas
	// +optional
	DynamicWeight DynamicWeight `json:"dynamicWeight,omitempty"`
}

// DynamicWeight is what clusters weigh by what they report.
type DynamicWeight string

// WeightByAvailableReplicas is the number of replicas that a cluster has room for.
const WeightByAvailableReplicas DynamicWeight = "AvailableReplicas"

// StaticClusterWeight is the weight of some clusters.
type StaticClusterWeight struct {
	// The clusters that are meant.
	// +required
	TargetCluster ClusterAffinity `json:"targetCluster"`

	// Their weight.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +required
	Weight int64 `json:"weight"`
}
