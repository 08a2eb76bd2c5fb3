package v1alpha2

import "time"

// AnnotationForceRollout rolls out what is there already whenever its value changes, for those whose spec is kept by a tool.
const AnnotationForceRollout = "materialize.cloud/force-rollout"

// AnnotationV1alpha1 has what an object says in v1alpha1 that v1alpha2 has no place for, as JSON with a version:
//
//	{"version": 1, "spec": {"requestRollout": "...", "inPlaceRollout": false}, "role": "...",
//	 "completed": {"request": "...", "hash": "..."}}
//
// The conversion writes it, and it rolls nothing out.
const AnnotationV1alpha1 = "fairlead.dev/v1alpha1"

// AnnotationRoleArn on a ServiceAccount is the AWS role of its pods.
const AnnotationRoleArn = "eks.amazonaws.com/role-arn"

// AnnotationAllowMaterialize on a ServiceAccount, with the value "true", allows every Materialize of the namespace to name it
// in spec.serviceAccountName.
const AnnotationAllowMaterialize = "fairlead.dev/allow-materialize"

// FieldOwner is who writes, in the eyes of server-side apply.
const FieldOwner = "fairlead/rollout"

// PassageRollout is the name of the passage.
const PassageRollout = "rollout"

// What every object carries that belongs to an environment.
const (
	// LabelResourceID has the environment's status.resourceId.
	LabelResourceID = "materialize.cloud/resource-id"
	// LabelApp has what the object is part of: environmentd, balancerd or console.
	LabelApp = "materialize.cloud/app"
	// LabelGeneration has the generation, on what is made for one.
	LabelGeneration = "materialize.cloud/generation"
	// AnnotationRolloutHash on a StatefulSet has the hash of the spec that it was made from, as it was then.
	AnnotationRolloutHash = "fairlead.dev/rollout-hash"
	// AnnotationApplied has a digest of what Fairlead last applied.
	AnnotationApplied = "fairlead.dev/applied"
)

// What the ConfigMap of a generation has.
const (
	// RecordSpec has what the generation was made from: a Materialize with no more than its spec and AnnotationForceRollout.
	RecordSpec = "materialize.json"
	// RecordStatefulSet has the StatefulSet as it was applied, and is applied again should somebody change or delete it.
	RecordStatefulSet = "statefulset.json"
)

// What holds where the spec does not say. The schema has the same defaults.
const (
	DefaultRolloutStrategy       = RolloutWaitUntilReady
	DefaultRolloutRequestTimeout = 24 * time.Hour
	DefaultAuthenticatorKind     = AuthenticatorNone
	DefaultReplicas              = 2
)
