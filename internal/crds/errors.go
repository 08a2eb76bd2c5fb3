package crds

import (
	"fmt"
	"strings"
)

// NotOwnedError is a CRD that was installed by another owner and left untouched.
type NotOwnedError struct {
	CRD string
	// Ownership says whose it is.
	Ownership string
}

func (e *NotOwnedError) Error() string {
	return fmt.Sprintf("CRD %s was not installed by Fairlead (it lacks the annotation %s), %s, and was left as it is: "+
		"adopt it with `fairlead crds install --take-over`, "+
		"or leave it to its owner and start the operator with --install-crds=false",
		e.CRD, SchemaVersionAnnotation, e.Ownership)
}

// NotPermittedError is the API server's refusal to let the caller install CRDs.
type NotPermittedError struct {
	Verb string
	CRDs []string
	// Err is the refusal of the first of them.
	Err error
}

func (e *NotPermittedError) Error() string {
	return fmt.Sprintf("not permitted to %s customresourcedefinitions.apiextensions.k8s.io (%s): %v: "+
		"grant get, create and patch on them, "+
		"or let an administrator run `fairlead crds install` and start the operator with --install-crds=false",
		e.Verb, strings.Join(e.CRDs, ", "), e.Err)
}

func (e *NotPermittedError) Unwrap() error { return e.Err }

// NeedsWebhookError is a CRD whose objects nobody could convert to the version that it would store.
type NeedsWebhookError struct {
	CRD string
	// Why says what has to be converted.
	Why string
}

func (e *NeedsWebhookError) Error() string {
	return fmt.Sprintf("CRD %s was left as it is: %s: start the operator, which installs the CRD together with its webhook, "+
		"or say where that is with --webhook-service", e.CRD, e.Why)
}
