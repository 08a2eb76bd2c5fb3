package crds

import (
	"fmt"
	"strings"
)

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
