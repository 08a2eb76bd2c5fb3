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

// Intent is what somebody asked for, as the annotation on the Mesh has it.
type Intent struct {
	// ID tells one intent from another. Nobody compares the times of two machines.
	ID string `json:"id"`
	// BatchSize is how many consumers are switched at a time; without it, one.
	BatchSize int32 `json:"batchSize,omitempty"`
	// Delay is how long a batch is left alone before the next one opens.
	Delay metav1.Duration `json:"delay,omitzero"`
	// Revert lets consumers go back.
	Revert bool `json:"revert,omitempty"`
	// Consumers are the only ones that it is about; without any, it is about all, those to come included.
	Consumers []string `json:"consumers,omitempty"`
}

// IntentOf is what was asked for about the consumers of a mesh; nil if nothing was.
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

// Validate tells what is wrong with an intent.
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

// Annotation is the intent as the annotation has it.
func (i Intent) Annotation() (string, error) {
	text, err := json.Marshal(i)
	return string(text), err
}

// includes says whether an intent is about a consumer. None is about all: what has begun is seen through.
func (i *Intent) includes(consumer string) bool {
	if i == nil || len(i.Consumers) == 0 {
		return true
	}
	_, found := slices.BinarySearch(i.Consumers, consumer)
	return found
}

// delaySeconds are whole ones, since that is what is recorded.
func (i Intent) delaySeconds() int32 {
	return int32((i.Delay.Duration + time.Second - 1) / time.Second)
}
