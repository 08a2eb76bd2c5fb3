package crds

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// job is the installation of one CRD.
type job struct {
	want   *apiextensionsv1.CustomResourceDefinition
	result Result
	done   bool
	// waiting says what an open job waits for.
	waiting string
	err     error
}

// end closes the job. The error is nil if another job reports the same one.
func (j *job) end(err error) {
	j.done, j.err = true, err
	if j.result.Outcome == "" {
		j.result.Outcome = Failed
		if err != nil {
			j.result.Message = err.Error()
		}
	}
}

// advance checks a CRD and takes one step. It returns only an error that stops all jobs; one about this CRD is kept in the job.
func (in *installer) advance(ctx context.Context, j *job) error {
	live, err := in.crds.Get(ctx, j.want.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		live = nil
	case err != nil:
		return in.classify(j, "get", err)
	}

	want, hold := desiredCRD(live, j.want, in.conversion(ctx, live, j.want, in.webhook != nil && in.webhook.Service != nil))
	outcome, message := decide(live, want, in.takeOver)
	if hold != "" {
		outcome, message = withoutWebhook(outcome, message, hold)
	}
	if outcome == NeedsWebhook && j.result.Outcome == TakenOver {
		outcome = Unchanged // taken over, but for the schema
	}
	if outcome.writes() {
		applied, err := in.write(ctx, live, want, outcome, hold)
		if isOutdated(err) {
			j.waiting = err.Error()
			return nil
		}
		if outcome == TakenOver && apierrors.IsInvalid(err) {
			j.end(fmt.Errorf("take over CRD %s, whose stored versions are %v: %w: move its objects to a version that Fairlead serves, "+
				"or leave the CRD to its owner and start the operator with --install-crds=false",
				j.want.Name, live.Status.StoredVersions, err))
			return nil
		}
		if err != nil {
			verb := "patch"
			if live == nil {
				verb = "create"
			}
			return in.classify(j, verb, err)
		}
		if live != nil && live.ResourceVersion == applied.ResourceVersion {
			outcome, message = Unchanged, ""
		}
		live = applied
	}
	// The result of this install is not replaced by Unchanged on the next check.
	completed := outcome == Unchanged || outcome == Repaired && j.result.Outcome == Created
	if j.result.Outcome == "" || !completed {
		j.result.Outcome, j.result.Message = outcome, message
	}
	switch outcome {
	case NeedsWebhook:
		j.end(fmt.Errorf("CRD %s was left as it is: %s: start the operator, which installs the CRD together with its webhook, "+
			"or name the Service of the webhook with --webhook-service", j.want.Name, message))
	case NotOwned:
		j.end(fmt.Errorf("CRD %s was not installed by Fairlead (the annotation %s is missing), %s, and was left as it is: "+
			"adopt the CRD with `fairlead crds install --take-over`, "+
			"or leave the CRD to its owner and start the operator with --install-crds=false",
			j.want.Name, SchemaVersionAnnotation, message))
	case Unchanged, NewerInCluster:
		j.done, j.waiting = established(live)
	case Deleting:
		j.waiting = message
	default:
		// A write is followed by another check: another client may have written too.
		_, j.waiting = established(live)
	}
	return nil
}

// conversion is the desired conversion of a CRD; nil if the CRD needs none, or no webhook is known.
func (in *installer) conversion(ctx context.Context, live, want *apiextensionsv1.CustomResourceDefinition, take bool) *apiextensionsv1.CustomResourceConversion {
	if in.webhook == nil || !needsWebhook(want) {
		return nil
	}
	return in.webhook.conversion(ctx, in, live, take)
}

// classify ends a job with an error about its CRD, and returns an error that concerns all CRDs.
func (in *installer) classify(j *job, verb string, err error) error {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsForbidden(err):
		j.end(&NotPermittedError{Verb: verb, CRDs: []string{j.want.Name}, Err: err})
		return nil
	case errors.As(err, &status) && !apierrors.IsUnauthorized(err):
		j.end(fmt.Errorf("%s CRD %s: %w", verb, j.want.Name, err))
		return nil
	}
	return fmt.Errorf("%s CRD %s at the API server %s: %w", verb, j.want.Name, in.server, err)
}

// established tells whether the API server serves the CRD, and if not, why.
func established(crd *apiextensionsv1.CustomResourceDefinition) (bool, string) {
	if apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
		return true, ""
	}
	names := apihelpers.FindCRDCondition(crd, apiextensionsv1.NamesAccepted)
	if names != nil && names.Status == apiextensionsv1.ConditionFalse {
		return false, "the names of the CRD are not accepted: " + names.Message
	}
	return false, "the API server has not established the CRD yet"
}
