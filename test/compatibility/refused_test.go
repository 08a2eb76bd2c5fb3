package compatibility

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// manifest is an object with its spec written in YAML's flow style.
func manifest(version, kind, name, spec string) string {
	return fmt.Sprintf("apiVersion: sailoperator.io/%s\nkind: %s\nmetadata: {name: %s}\nspec: %s\n", version, kind, name, spec)
}

func istio(spec string) string { return manifest("v1", "Istio", "refused", spec) }

func batched(settings string) string {
	return istio("{updateStrategy: {workloadMigration: {strategy: Batched, batched: " + settings + "}}}")
}

func revision(name, spec string) string { return manifest("v1", "IstioRevision", name, spec) }

func tag(targetRef string) string {
	return manifest("v1", "IstioRevisionTag", "refused", "{targetRef: "+targetRef+"}")
}

func TestStoryInvalidObjectsAreRefused(t *testing.T) {
	const migration = "spec.updateStrategy.workloadMigration"
	cases := map[string]struct{ object, field, because string }{
		"batch of nothing":            {batched(`{batchSize: 0}`), migration + ".batched.batchSize", "greater than or equal to 1"},
		"negative batch":              {batched(`{batchSize: -3}`), migration + ".batched.batchSize", "greater than or equal to 1"},
		"unknown strategy":            {istio(`{updateStrategy: {workloadMigration: {strategy: Canary}}}`), migration + ".strategy", `"Batched"`},
		"unknown failure policy":      {batched(`{failurePolicy: Retry}`), migration + ".batched.failurePolicy", `"FailFast"`},
		"maxVersion without patch":    {batched(`{maxVersion: "1.26"}`), migration + ".batched.maxVersion", "full version"},
		"maxVersion with a wildcard":  {batched(`{maxVersion: 1.26.x}`), migration + ".batched.maxVersion", "full version"},
		"maxVersion with a range":     {batched(`{maxVersion: "<=1.26.0"}`), migration + ".batched.maxVersion", "full version"},
		"maxVersion in words":         {batched(`{maxVersion: latest}`), migration + ".batched.maxVersion", "full version"},
		"maxVersion empty":            {batched(`{maxVersion: ""}`), migration + ".batched.maxVersion", "full version"},
		"maxVersion with zeros ahead": {batched(`{maxVersion: 1.026.0}`), migration + ".batched.maxVersion", "full version"},
		"maxVersion beyond numbers":   {batched(`{maxVersion: 1.99999999999999999999.0}`), migration + ".batched.maxVersion", "full version"},
		"delay in words":              {batched(`{delayBetweenBatches: 5 minutes}`), migration + ".batched.delayBetweenBatches", "must be a duration"},
		"delay without unit":          {batched(`{delayBetweenBatches: "30"}`), migration + ".batched.delayBetweenBatches", "must be a duration"},
		"delay as number":             {batched(`{delayBetweenBatches: 30}`), migration + ".batched.delayBetweenBatches", "must be of type string"},
		"delay negative":              {batched(`{delayBetweenBatches: -1s}`), migration + ".batched.delayBetweenBatches", "not negative"},
		"delay empty":                 {batched(`{delayBetweenBatches: ""}`), migration + ".batched.delayBetweenBatches", "must be a duration"},
		"timeout in words":            {batched(`{readinessTimeout: 5 minutes}`), migration + ".batched.readinessTimeout", "must be a duration"},
		"timeout negative":            {batched(`{readinessTimeout: -1s}`), migration + ".batched.readinessTimeout", "not negative"},
		"timeout of nothing":          {batched(`{readinessTimeout: 0s}`), migration + ".batched.readinessTimeout", "must be longer than 0s"},
		"no timeout for anybody":      {batched(`{maxReadinessTimeout: 0s}`), migration + ".batched.maxReadinessTimeout", "must be longer than 0s"},
		"timeout of nothing at all":   {batched(`{readinessTimeout: 0h0m0s}`), migration + ".batched.readinessTimeout", "must be longer than 0s"},
		"timeout beyond all ages":     {batched(`{readinessTimeout: 99999999h}`), migration + ".batched.readinessTimeout", "must be a duration"},
		"kind that cannot move":       {batched(`{workloadKinds: [Deployment, Job]}`), migration + ".batched.workloadKinds[1]", `"StatefulSet"`},
		"kind twice":                  {batched(`{workloadKinds: [Deployment, Deployment]}`), migration + ".batched.workloadKinds[1]", "Duplicate"},
		"no kind":                     {batched(`{workloadKinds: []}`), migration + ".batched.workloadKinds", "at least 1"},
		"unknown update type":         {istio(`{updateStrategy: {type: Recreate}}`), "spec.updateStrategy.type", `"RevisionBased"`},
		"negative grace period": {
			istio(`{updateStrategy: {inactiveRevisionDeletionGracePeriodSeconds: -1}}`),
			"spec.updateStrategy.inactiveRevisionDeletionGracePeriodSeconds", "greater than or equal to 0",
		},
		"updateWorkloads is gone":      {istio(`{updateStrategy: {updateWorkloads: true}}`), "spec.updateStrategy.updateWorkloads", "unknown field"},
		"version without v":            {istio(`{version: 1.24.0}`), "spec.version", "such as v1.24.0"},
		"version without patch":        {istio(`{version: v1.24}`), "spec.version", "such as v1.24.0"},
		"version in words":             {istio(`{version: latest}`), "spec.version", "such as v1.24.0"},
		"version that makes no name":   {istio(`{version: v1.24.0-RC_1}`), "spec.version", "such as v1.24.0"},
		"version with zeros ahead":     {istio(`{version: v1.24.0-01}`), "spec.version", "such as v1.24.0"},
		"version empty":                {istio(`{version: ""}`), "spec.version", "such as v1.24.0"},
		"namespace that cannot be":     {istio(`{namespace: Istio_System}`), "spec.namespace", "should match"},
		"namespace empty":              {istio(`{namespace: ""}`), "spec.namespace", "should match"},
		"profile that cannot be":       {istio(`{profile: ../../etc/passwd}`), "spec.profile", "should match"},
		"values.revisionTags":          {istio(`{values: {revisionTags: [prod]}}`), "spec.values.revisionTags", "IstioRevisionTag"},
		"values.revision":              {istio(`{values: {revision: canary}}`), "spec.values.revision", "Fairlead names the revisions"},
		"values.global.istioNamespace": {istio(`{values: {global: {istioNamespace: other}}}`), "spec.values.global.istioNamespace", "same as spec.namespace"},
		"values as text":               {istio(`{values: "pilot: {}"}`), "spec.values", "must be of type object"},
		"name of an Istio with dots":   {manifest("v1", "Istio", "east.mesh", `{}`), "metadata.name", "at most 36"},
		"name of an Istio too long":    {manifest("v1", "Istio", strings.Repeat("i", 37), `{}`), "metadata.name", "at most 36"},

		"revision without version":        {revision("refused", `{}`), "spec.version", "Required value"},
		"revision of an alias":            {revision("refused", `{version: v1.24-latest}`), "spec.version", "must be an exact version"},
		"revision with another name":      {revision("refused", `{version: v1.24.0, values: {revision: other}}`), "spec.values.revision", "same as metadata.name"},
		"revision with no name in values": {revision("refused", `{version: v1.24.0, values: {revision: ""}}`), "spec.values.revision", "same as metadata.name"},
		"revision default by name":        {revision("default", `{version: v1.24.0, values: {revision: default}}`), "spec.values.revision", "empty where that is 'default'"},
		"revision with tags":              {revision("refused", `{version: v1.24.0, values: {revisionTags: [prod]}}`), "spec.values.revisionTags", "IstioRevisionTag"},
		"revision in two namespaces": {
			revision("refused", `{version: v1.24.0, namespace: mesh, values: {global: {istioNamespace: istio-system}}}`),
			"spec.values.global.istioNamespace", "same as spec.namespace",
		},
		"name of a revision with dots": {revision("default-v1.24.0", `{version: v1.24.0}`), "metadata.name", "at most 46"},
		"name of a revision too long":  {revision(strings.Repeat("r", 47), `{version: v1.24.0}`), "metadata.name", "at most 46"},

		"tag to a bad kind":        {tag(`{kind: IstioCNI, name: default}`), "spec.targetRef.kind", `"IstioRevision"`},
		"tag to a tag":             {tag(`{kind: IstioRevisionTag, name: default}`), "spec.targetRef.kind", `"IstioRevision"`},
		"tag to no kind":           {tag(`{name: default}`), "spec.targetRef.kind", "Required value"},
		"tag to no name":           {tag(`{kind: Istio}`), "spec.targetRef.name", "Required value"},
		"tag to an empty name":     {tag(`{kind: Istio, name: ""}`), "spec.targetRef.name", "at least 1 chars"},
		"tag to nothing":           {manifest("v1", "IstioRevisionTag", "refused", `{}`), "spec.targetRef", "Required value"},
		"name of a tag too long":   {manifest("v1", "IstioRevisionTag", strings.Repeat("t", 41), `{targetRef: {kind: Istio, name: default}}`), "metadata.name", "at most 40"},
		"v1alpha1 tag to bad kind": {manifest("v1alpha1", "IstioRevisionTag", "refused", `{targetRef: {kind: Pod, name: default}}`), "spec.targetRef.kind", `"IstioRevision"`},
	}
	c := server(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := c.Create(t.Context(), parse(t, tc.object), client.DryRunAll)
			expectRefusal(t, err, tc.field, tc.because)
		})
	}
}

func TestStoryInvalidChangesAreRefused(t *testing.T) {
	const immutable = "cannot be changed"
	cases := map[string]struct{ before, after, field, because string }{
		"Istio to another namespace":           {istio(`{namespace: mesh}`), istio(`{namespace: other}`), "spec.namespace", immutable},
		"Istio back to the default namespace":  {istio(`{namespace: mesh}`), istio(`{}`), "spec.namespace", immutable},
		"Istio away from the default":          {istio(`{}`), istio(`{namespace: mesh}`), "spec.namespace", immutable},
		"IstioRevision to another namespace":   {revision("moved", `{version: v1.24.0}`), revision("moved", `{version: v1.24.0, namespace: mesh}`), "spec.namespace", immutable},
		"IstioRevisionTag to an unknown kind":  {tag(`{kind: Istio, name: a}`), tag(`{kind: Deployment, name: a}`), "spec.targetRef.kind", "Unsupported value"},
		"values that no longer fit namespaces": {istio(`{namespace: mesh}`), istio(`{namespace: mesh, values: {global: {istioNamespace: istio-system}}}`), "spec.values.global.istioNamespace", "same as spec.namespace"},
	}
	c := server(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			applied := apply(t, c, parse(t, tc.before))
			changed := parse(t, tc.after)
			changed.SetResourceVersion(applied.GetResourceVersion())
			expectRefusal(t, c.Update(t.Context(), changed), tc.field, tc.because)
		})
	}
}

func expectRefusal(t *testing.T, err error, field, because string) {
	t.Helper()
	switch {
	case err == nil:
		t.Error("accepted")
	case !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err):
		t.Errorf("failed for another reason: %v", err)
	case !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), because):
		t.Errorf("refusal does not speak of %s and %q:\n%v", field, because, err)
	}
}
