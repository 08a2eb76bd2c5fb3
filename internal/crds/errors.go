package crds

import (
	"fmt"
	"strings"
)

// NotOwnedError is a CRD that was installed by another owner and left untouched.
type NotOwnedError struct {
	CRD string
	// Ownership names the managers of the CRD.
	Ownership string
}

func (e *NotOwnedError) Error() string {
	return fmt.Sprintf("CRD %s was not installed by Fairlead (the annotation %s is missing), %s, and was left as it is: "+
		"adopt the CRD with `fairlead crds install --take-over`, "+
		"or leave the CRD to its owner and start the operator with --install-crds=false",
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

// NeedsWebhookError is a CRD whose stored objects need a webhook to be converted to its storage version.
type NeedsWebhookError struct {
	CRD string
	// Why names the stored versions.
	Why string
}

func (e *NeedsWebhookError) Error() string {
	return fmt.Sprintf("CRD %s was left as it is: %s: start the operator, which installs the CRD together with its webhook, "+
		"or name the Service of the webhook with --webhook-service", e.CRD, e.Why)
}
