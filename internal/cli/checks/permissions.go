package checks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fairlead/fairlead/charts"
	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/internal/operator/lease"
)

// access is a permission that is asked about: in all namespaces, and for all names, unless it names one.
type access struct{ verb, group, resource, namespace, name string }

func (a access) String() string {
	resource, subresource, found := strings.Cut(a.resource, "/")
	text := a.verb + " " + strings.TrimSuffix(resource+"."+a.group, ".")
	if found {
		text += "/" + subresource
	}
	if a.name != "" {
		text += " " + a.name
	}
	if a.namespace != "" {
		text += " in " + a.namespace
	}
	return text
}

func (a access) attributes() authorizationv1.ResourceAttributes {
	resource, subresource, _ := strings.Cut(a.resource, "/")
	return authorizationv1.ResourceAttributes{
		Verb: a.verb, Group: a.group, Resource: resource, Subresource: subresource, Namespace: a.namespace, Name: a.name,
	}
}

// each is an access for each resource.
func each(verb, group string, resources ...string) []access {
	var all []access
	for _, resource := range resources {
		all = append(all, access{verb: verb, group: group, resource: resource})
	}
	return all
}

// toInstall is what whoever installs the chart must be allowed, and toCheck what this command needs.
var (
	toInstall = slices.Concat(
		each("create", "", "namespaces", "secrets", "serviceaccounts", "services"),
		each("create", "apps", "deployments"),
		each("create", "networking.k8s.io", "networkpolicies"),
		each("create", "policy", "poddisruptionbudgets"),
		each("create", rbacv1.GroupName, "clusterrolebindings", "clusterroles", "rolebindings", "roles"),
		each("bind", rbacv1.GroupName, "clusterroles", "roles"),
		each("escalate", rbacv1.GroupName, "clusterroles", "roles"),
		each("create", "admissionregistration.k8s.io", "validatingadmissionpolicies", "validatingadmissionpolicybindings"),
	)
	toCheck = slices.Concat(
		each("list", "apps", "deployments"),
		each("list", "coordination.k8s.io", "leases"),
		each("list", "apiextensions.k8s.io", "customresourcedefinitions"),
	)
)

// parallelReviews is how many reviews are asked for at a time: the chart grants hundreds of permissions.
const parallelReviews = 16

// lacking are the permissions that a review does not allow.
func lacking(ctx context.Context, asked []access, review func(context.Context, authorizationv1.ResourceAttributes) (bool, error)) ([]string, error) {
	allowed := make([]bool, len(asked))
	reviews, ctx := errgroup.WithContext(ctx)
	reviews.SetLimit(parallelReviews)
	for i, a := range asked {
		reviews.Go(func() (err error) {
			allowed[i], err = review(ctx, a.attributes())
			return err
		})
	}
	if err := reviews.Wait(); err != nil {
		return nil, err
	}
	var missing []string
	for i, a := range asked {
		if !allowed[i] {
			missing = append(missing, a.String())
		}
	}
	return missing, nil
}

// callerLacks are the permissions that the caller has not got.
func callerLacks(ctx context.Context, clients kubernetes.Interface, asked []access) ([]string, error) {
	return lacking(ctx, asked, func(ctx context.Context, a authorizationv1.ResourceAttributes) (bool, error) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a}}
		review, err := clients.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed, err
	})
}

// userLacks are the permissions that another user has not got.
func userLacks(ctx context.Context, clients kubernetes.Interface, user string, asked []access) ([]string, error) {
	return lacking(ctx, asked, func(ctx context.Context, a authorizationv1.ResourceAttributes) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &a}}
		review, err := clients.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed, err
	})
}

// neededBy is what the chart grants an operator with such flags: the rules that are generated from the code that needs them, and those
// of single namespaces.
func neededBy(d *appsv1.Deployment) ([]access, error) {
	// Another version may have a passage that this one does not know.
	passages := slices.DeleteFunc(passagesOf(d), func(name string) bool { return !slices.Contains(operator.Names(), name) })
	rules, err := charts.Rules(passages...)
	if err != nil {
		return nil, err
	}
	if flagOf(d, "install-crds") == "false" {
		rules = slices.DeleteFunc(rules, writesOwnCRDs)
	}
	asked := []access{{verb: "create", group: "coordination.k8s.io", resource: "leases", namespace: lease.Namespace}}
	for _, passage := range passages {
		for _, verb := range []string{"get", "update"} {
			asked = append(asked, access{verb, "coordination.k8s.io", "leases", lease.Namespace, lease.Name(passage)})
		}
	}
	if namespace := flagOf(d, "mesh-namespace"); namespace != "" && slices.Contains(passages, "meshservice") {
		for _, verb := range []string{"get", "list", "watch", "create", "update"} {
			asked = append(asked, access{verb: verb, resource: "configmaps", namespace: namespace})
		}
	}
	for _, rule := range rules {
		asked = append(asked, accessesOf(rule)...)
	}
	slices.SortFunc(asked, func(a, b access) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(asked), nil
}

func accessesOf(rule rbacv1.PolicyRule) []access {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var all []access
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				for _, name := range names {
					all = append(all, access{verb: verb, group: group, resource: resource, name: name})
				}
			}
		}
	}
	return all
}

// writesOwnCRDs tells whether a rule is for installing Fairlead's CRDs, which the chart leaves out with installCRDs: false.
func writesOwnCRDs(rule rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rule.ResourceNames, func(name string) bool {
		return slices.ContainsFunc(operator.Passages(), func(p operator.Passage) bool { return slices.Contains(p.CRDs, name) })
	})
}

// bounded are the first few of many texts.
func bounded(texts []string, most int, separator string) string {
	if more := len(texts) - most; more > 0 {
		return strings.Join(texts[:most], separator) + fmt.Sprintf("%sand %d more", separator, more)
	}
	return strings.Join(texts, separator)
}
