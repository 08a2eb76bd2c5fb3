package v1alpha2

import (
	"fmt"
	"time"
)

// Duration is a span of time as the user wrote it, such as "90s". It stays text until it is used: a type that parsed while
// decoding would fail on a bad value, and one bad object in a list stops an informer for all of them.
//
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration that is not negative, such as 90s, 5m or 1h30m"
type Duration string

// Parse gives the span of time, or an error where the API server's check was not there to refuse the text.
func (d Duration) Parse() (time.Duration, error) {
	span, err := time.ParseDuration(string(d))
	if err != nil {
		return 0, err
	}
	if span < 0 {
		return 0, fmt.Errorf("duration %q is negative", d)
	}
	return span, nil
}
