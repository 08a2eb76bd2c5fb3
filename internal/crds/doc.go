// Package crds holds Fairlead's custom resource definitions and brings them into
// a cluster.
//
// Every CRD carries its schema version in an annotation. The version is a counter
// per CRD in schema.lock, next to a hash of what it stands for; a test fails when
// the manifests have changed and the counter has not, and
//
//	go generate ./internal/crds
//
// moves it on. A cluster that has a higher version than this binary keeps what it
// has: an older operator, or one that is being rolled back, never takes fields
// away from objects that already use them.
//
// The annotation is also the mark of ownership. A CRD without it was installed by
// another owner and is left untouched, unless the caller asks to take it over. A
// CRD that bears it belongs to Fairlead: edits made to it by hand are undone at
// the next install, except spec.conversion, which the manifests do not state and
// which is set where the webhook and its certificate are known.
//
// A CRD whose versions differ always has a webhook that converts between them. It
// gets its versions and its webhook in one write; where no webhook is known, only
// the stored version is served, and a CRD with objects of another version is left
// as it is.
//
// Objects that are stored in an older version stay readable, but that version
// cannot be removed while there are any. Migrate rewrites them, unchanged.
package crds

//go:generate go test -run ^TestSchemaLock$ . -update
