package v1alpha2

import "time"

// AnnotationForceRollout rolls out what is there already whenever its value changes, for those whose spec is kept by a tool.
const AnnotationForceRollout = "materialize.cloud/force-rollout"

// AnnotationRoleArn on a ServiceAccount is the AWS role of its pods.
const AnnotationRoleArn = "eks.amazonaws.com/role-arn"

// FieldOwner is who writes, in the eyes of server-side apply.
const FieldOwner = "fairlead/rollout"

// PassageRollout is the name of the passage.
const PassageRollout = "rollout"

// What holds where the spec does not say. The schema has the same defaults.
const (
	DefaultRolloutStrategy       = RolloutWaitUntilReady
	DefaultRolloutRequestTimeout = 24 * time.Hour
	DefaultAuthenticatorKind     = AuthenticatorNone
	DefaultReplicas              = 2
)
