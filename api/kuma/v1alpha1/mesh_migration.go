package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MeshMigration is how far a switch of consumers is. The consumers are recorded in MeshConsumerSlices.
type MeshMigration struct {
	// Identity of the intent that is followed.
	// +optional
	Intent string `json:"intent,omitempty"`

	// Value of the annotation fairlead.dev/retry that was followed last.
	// +optional
	Retry string `json:"retry,omitempty"`

	// The consumers go back instead.
	// +optional
	Revert bool `json:"revert,omitempty"`

	// How many consumers are switched at a time.
	// +optional
	BatchSize int32 `json:"batchSize,omitempty"`

	// How long to wait between two batches, in seconds.
	// +optional
	DelaySeconds int32 `json:"delaySeconds,omitempty"`

	// The batch that is under way, from 1.
	// +optional
	Batch int32 `json:"batch,omitempty"`

	// How many batches there are.
	// +optional
	Batches int32 `json:"batches,omitempty"`

	// The consumers, as earlier versions recorded them here. They are moved to MeshConsumerSlices, and the field is empty then.
	// +listType=map
	// +listMapKey=name
	// +optional
	Consumers []MigratedConsumer `json:"consumers,omitempty"`

	// How many consumers have been switched over.
	// +optional
	Switched int32 `json:"switched"`

	// How many consumers there are, also those that are not to be switched over.
	// +optional
	Total int32 `json:"total"`

	// How many of them have failed.
	// +optional
	Failed int32 `json:"failed"`

	// What is going on now.
	// +optional
	Phase string `json:"phase,omitempty"`
}

// ConsumerState is what became of a consumer.
//
// +kubebuilder:validation:Enum=Waiting;Switching;Switched;Reverting;Reverted;Failed
type ConsumerState string

// The states of a consumer.
const (
	// ConsumerWaiting: its batch has not opened yet.
	ConsumerWaiting ConsumerState = "Waiting"
	// ConsumerSwitching: its proxies have not all acknowledged yet.
	ConsumerSwitching ConsumerState = "Switching"
	// ConsumerSwitched: it reaches MeshServices.
	ConsumerSwitched ConsumerState = "Switched"
	// ConsumerReverting: it goes back, and its proxies have not all acknowledged yet.
	ConsumerReverting ConsumerState = "Reverting"
	// ConsumerReverted: it went back to tags alone.
	ConsumerReverted ConsumerState = "Reverted"
	// ConsumerFailed: a proxy refused the configuration, or was lost.
	ConsumerFailed ConsumerState = "Failed"
)

// MigratedConsumer is one consumer, and what became of it.
type MigratedConsumer struct {
	// Namespace, kind and name, such as shop/Deployment/cart.
	// +required
	Name string `json:"name"`

	// What became of it.
	// +required
	State ConsumerState `json:"state"`

	// Its proxies are given MeshServices, whatever came of that.
	// +optional
	Switched bool `json:"switched,omitempty"`

	// The batch that it is part of, from 1.
	// +optional
	Batch int32 `json:"batch,omitempty"`

	// Since when it is in this state.
	// +optional
	Since metav1.Time `json:"since,omitzero"`

	// When it was done with, well or not.
	// +optional
	Finished *metav1.Time `json:"finished,omitempty"`

	// The proxies that were connected when its batch opened, for as long as they are waited for.
	// +listType=atomic
	// +optional
	Proxies []string `json:"proxies,omitempty"`

	// What went wrong, and what to do.
	// +optional
	Message string `json:"message,omitempty"`
}
