package model

import (
	"github.com/fairlead/fairlead/internal/passage"
)

// What a forecast tells of objects, besides what is done about them.
const (
	// ActionConflict is for one that is left alone because it is somebody else's.
	ActionConflict passage.Action = "conflict"
	// ActionRemove is for one that goes, because its resource no longer goes to the cluster.
	ActionRemove passage.Action = "remove"
	// ActionRelease is for one that stays without the marks, for the same reason.
	ActionRelease passage.Action = "release"
	// ActionUnknown is for one that nobody can look at.
	ActionUnknown passage.Action = "unknown"
)

// What is done about an object in a cluster.
const (
	// ActionCreate makes it.
	ActionCreate passage.Action = "create"
	// ActionTakeOver writes over one that the cluster ran already.
	ActionTakeOver passage.Action = "take over"
	// ActionUpdate writes what has changed on the hub, or puts back what somebody has changed in the cluster.
	ActionUpdate passage.Action = "update"
	// ActionAwait waits until one that is going is gone.
	ActionAwait passage.Action = "await"
	// ActionLeave leaves one alone that is somebody else's.
	ActionLeave passage.Action = "leave"
	// ActionNone is for one that is as it should be.
	ActionNone passage.Action = "unchanged"
)

// What is told of how far a policy is.
const (
	// ActionApply has an object be in a cluster as it should.
	ActionApply passage.Action = "apply"
	// ActionBind finds the clusters that a resource goes to.
	ActionBind passage.Action = "bind"
	// ActionSelect finds the resources that a policy takes.
	ActionSelect passage.Action = "select"
	// ActionPutBack lets go of a resource that was aborted, in all of its clusters.
	ActionPutBack passage.Action = "put back"
)
