package crds

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
)

// ConversionPath is where a webhook converts objects.
const ConversionPath = "/convert"

// conversionOwner is the field owner of conversion. An apply by FieldOwner, which has no conversion in it, would remove a
// conversion of the same owner.
const conversionOwner = "fairlead/conversion"

// Webhook converts the objects of CRDs whose versions differ.
type Webhook struct {
	// Service of the webhook. Without a Service, URL is that of this process.
	Service *apiextensionsv1.ServiceReference
	URL     string
	Trust   Trust
	// Elected, if set, is closed when this process becomes the leader. Only the leader removes authorities that are no longer
	// needed. It takes the conversion over from another webhook that serves, once, so that two processes that both consider
	// themselves the leader do not take turns.
	Elected <-chan struct{}
}

// Trust provides the authorities that the API server has to trust in order to call the webhook.
type Trust interface {
	// Bundle is the CA bundle to publish in PEM, given the published one.
	Bundle(published []byte, drop bool) []byte
	// Published is called with the CA bundle that is published.
	Published(bundle []byte)
	// Changed signals that the bundle may have changed.
	Changed() <-chan struct{}
}

// StaticTrust is a CA bundle that never changes.
type StaticTrust []byte

func (t StaticTrust) Bundle([]byte, bool) []byte { return t }

func (StaticTrust) Published([]byte) {}

func (StaticTrust) Changed() <-chan struct{} { return nil }

func (w *Webhook) String() string {
	if w.Service == nil {
		return w.URL + ConversionPath
	}
	return fmt.Sprintf("Service %s/%s:%d", w.Service.Namespace, w.Service.Name, ptr.Deref(w.Service.Port, 443))
}

// conversion is the desired conversion of a CRD, given the live one. Another webhook that serves stays, unless this one
// replaces it.
func (w *Webhook) conversion(ctx context.Context, in *installer, live *apiextensionsv1.CustomResourceDefinition, take bool) *apiextensionsv1.CustomResourceConversion {
	if live == nil {
		return w.ownConversion(nil)
	}
	if _, ours := schemaVersion(live); !ours {
		return w.ownConversion(nil) // a former owner's webhook does not know our versions
	}
	other := clientConfigOf(live.Spec.Conversion)
	switch {
	case w.targets(other):
		w.Trust.Published(other.CABundle)
	case other != nil && !(take && w.canReplace(other)) && in.webhookExists(ctx, other):
		return live.Spec.Conversion
	}
	return w.ownConversion(other)
}

// canReplace tells whether this webhook may replace another that serves. A Service outlasts a process that was started by
// hand.
func (w *Webhook) canReplace(other *apiextensionsv1.WebhookClientConfig) bool {
	return w.Service != nil || other.Service == nil
}

// ownConversion is the conversion by this webhook.
func (w *Webhook) ownConversion(have *apiextensionsv1.WebhookClientConfig) *apiextensionsv1.CustomResourceConversion {
	var published []byte
	if have != nil {
		published = have.CABundle
	}
	leading := false
	select {
	case <-w.Elected:
		leading = true
	default:
	}
	config := &apiextensionsv1.WebhookClientConfig{CABundle: w.Trust.Bundle(published, leading)}
	if w.Service != nil {
		config.Service = w.Service.DeepCopy()
		config.Service.Path = ptr.To(ConversionPath)
	} else {
		config.URL = ptr.To(w.URL + ConversionPath)
	}
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             config,
			ConversionReviewVersions: []string{"v1"},
		},
	}
}

// targets tells whether a CRD's conversion is done by this webhook already.
func (w *Webhook) targets(config *apiextensionsv1.WebhookClientConfig) bool {
	switch {
	case config == nil:
		return false
	case w.Service != nil:
		have := config.Service
		return have != nil && have.Namespace == w.Service.Namespace && have.Name == w.Service.Name &&
			ptr.Deref(have.Port, 443) == ptr.Deref(w.Service.Port, 443)
	}
	return ptr.Deref(config.URL, "") == w.URL+ConversionPath
}

func clientConfigOf(conversion *apiextensionsv1.CustomResourceConversion) *apiextensionsv1.WebhookClientConfig {
	if conversion == nil || conversion.Strategy != apiextensionsv1.WebhookConverter || conversion.Webhook == nil {
		return nil
	}
	return conversion.Webhook.ClientConfig
}

// ParseService reads NAMESPACE/NAME:PORT; no text is no Service.
func ParseService(text string) (*apiextensionsv1.ServiceReference, error) {
	if text == "" {
		return nil, nil
	}
	namespace, rest, _ := strings.Cut(text, "/")
	name, port, _ := strings.Cut(rest, ":")
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1035Label(name)) > 0 {
		return nil, fmt.Errorf("%q is not NAMESPACE/NAME:PORT", text)
	}
	return &apiextensionsv1.ServiceReference{Namespace: namespace, Name: name, Port: ptr.To(int32(number))}, nil
}
