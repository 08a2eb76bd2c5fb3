package model

import "github.com/fairlead/fairlead/internal/passage"

// What becomes of an object in a cluster.
const (
	// ActionCreate creates an object.
	ActionCreate passage.Action = "create"
	// ActionTakeOver writes over an object that the cluster ran already.
	ActionTakeOver passage.Action = "take over"
	// ActionUpdate writes what has changed on the hub, or reverts drift.
	ActionUpdate passage.Action = "update"
	// ActionWait waits until an object that is being deleted is gone.
	ActionWait passage.Action = "wait"
	// ActionLeave leaves an object alone that is not the hub's, or that something else keeps changing.
	ActionLeave passage.Action = "leave"
	// ActionNone is for an object that is as it should be.
	ActionNone passage.Action = "unchanged"
	// ActionDelete deletes an object.
	ActionDelete passage.Action = "delete"
	// ActionOrphan leaves an object in its cluster, without the labels of the hub.
	ActionOrphan passage.Action = "orphan"
	// ActionRestore makes an object what it was before it was taken over.
	ActionRestore passage.Action = "restore"
	// ActionKeep leaves an object as it is, for another Work follows.
	ActionKeep passage.Action = "keep"
	// ActionAbandon leaves an object as it is, for its cluster is gone or cannot be reached any more.
	ActionAbandon passage.Action = "abandon"
)

// What a forecast says of objects, besides.
const (
	// ActionConflict is for an object that is left alone.
	ActionConflict passage.Action = "conflict"
	// ActionUnknown is for an object whose cluster cannot be reached.
	ActionUnknown passage.Action = "unknown"
)

// What is reported of a policy.
const (
	// ActionApply brings an object in a cluster to what its template says.
	ActionApply passage.Action = "apply"
	// ActionBind finds the clusters that a template goes to.
	ActionBind passage.Action = "bind"
	// ActionSelect finds the templates that a policy takes.
	ActionSelect passage.Action = "select"
	// ActionReport writes the status of a policy.
	ActionReport passage.Action = "report"
)
