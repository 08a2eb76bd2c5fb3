package consumers

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
)

// Intent is the content of the annotation on the Mesh.
type Intent struct {
	// ID tells intents apart, since clocks of machines differ.
	ID string `json:"id"`
	// BatchSize is the number of consumers of a batch; the default is 1.
	BatchSize int32 `json:"batchSize,omitempty"`
	// Delay is the pause between batches.
	Delay metav1.Duration `json:"delay,omitzero"`
	// Revert switches consumers back.
	Revert bool `json:"revert,omitempty"`
	// AllowDisconnected switches consumers whose proxies are not connected, without the acknowledgement of these.
	AllowDisconnected bool `json:"allowDisconnected,omitempty"`
	// Consumers restrict the intent; without any, it includes all, also later ones.
	Consumers []string `json:"consumers,omitempty"`
}

// IntentOf returns the intent of a Mesh; nil if there is none.
func IntentOf(mesh *kumav1alpha1.Mesh) (*Intent, error) {
	text, found := mesh.Annotations[kumav1alpha1.AnnotationMigrate]
	if !found || text == "" {
		return nil, nil
	}
	intent, err := parseIntent(text)
	if err != nil {
		return nil, fmt.Errorf("annotation %s of Mesh %s: %w; write it with `fairlead migrate mesh %s`",
			kumav1alpha1.AnnotationMigrate, mesh.Name, err, mesh.Name)
	}
	return intent, nil
}

func parseIntent(text string) (*Intent, error) {
	intent := &Intent{}
	if err := json.Unmarshal([]byte(text), intent); err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	if intent.BatchSize == 0 {
		intent.BatchSize = 1
	}
	if err := intent.Validate(); err != nil {
		return nil, err
	}
	slices.Sort(intent.Consumers)
	intent.Consumers = slices.Compact(intent.Consumers)
	return intent, nil
}

// Validate returns what is wrong with an intent.
func (i Intent) Validate() error {
	switch {
	case i.ID == "":
		return errors.New("id is missing: a new id marks a new intent")
	case i.BatchSize < 1:
		return fmt.Errorf("batchSize %d is less than 1", i.BatchSize)
	case i.Delay.Duration < 0:
		return fmt.Errorf("delay %s is negative", i.Delay.Duration)
	case i.Delay.Duration > math.MaxInt32*time.Second:
		return fmt.Errorf("delay %s is longer than %s", i.Delay.Duration, math.MaxInt32*time.Second)
	case slices.Contains(i.Consumers, ""):
		return errors.New("consumers has an empty name")
	}
	return nil
}

// Annotation returns the intent as JSON.
func (i Intent) Annotation() (string, error) {
	text, err := json.Marshal(i)
	return string(text), err
}

// includes says whether an intent includes a consumer. No intent includes all: what has begun is completed.
func (i *Intent) includes(consumer string) bool {
	if i == nil || len(i.Consumers) == 0 {
		return true
	}
	_, found := slices.BinarySearch(i.Consumers, consumer)
	return found
}

// delaySeconds rounds up to the recorded unit.
func (i Intent) delaySeconds() int32 {
	return int32((i.Delay.Duration + time.Second - 1) / time.Second)
}
