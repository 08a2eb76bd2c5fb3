package objects

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// The kinds of the objects that all generations share.
var (
	KindServiceAccount = corev1.SchemeGroupVersion.WithKind("ServiceAccount")
	KindRole           = rbacv1.SchemeGroupVersion.WithKind("Role")
	KindRoleBinding    = rbacv1.SchemeGroupVersion.WithKind("RoleBinding")
	KindDeployment     = appsv1.SchemeGroupVersion.WithKind("Deployment")
)

// ActiveConfig is what shared objects depend on besides the spec.
type ActiveConfig struct {
	// Spec of the active generation. Nil: unknown.
	Spec *v1alpha2.MaterializeSpec
	// Next is the spec of the generation that is being promoted. Nil: there is none, or it is unknown.
	Next *v1alpha2.MaterializeSpec
	// Image of environmentd in the active generation. Empty: no rollout has completed yet.
	Image string
	// Selector of the pods of the active generation.
	Selector map[string]string
	// AccountRefused holds if the current spec may not use the ServiceAccount that it names.
	AccountRefused bool
}

// specs are those of all generations that run. That of a promotion takes precedence over the current spec.
func (s ActiveConfig) specs(m *v1alpha2.Materialize) []*v1alpha2.MaterializeSpec {
	var all []*v1alpha2.MaterializeSpec
	for _, spec := range []*v1alpha2.MaterializeSpec{s.Next, &m.Spec, s.Spec} {
		if spec != nil {
			all = append(all, spec)
		}
	}
	return all
}

// Shared returns the objects that all generations share. Those that the first generation needs come first; Services and
// Deployments in front of environmentd follow once a rollout has completed. With an error, Shared returns the objects
// that can be created all the same.
func Shared(m *v1alpha2.Materialize, now ActiveConfig) ([]*unstructured.Unstructured, error) {
	specs := now.specs(m)
	all := certificates(m, specs)
	if now.AccountRefused {
		// Nothing is granted to a ServiceAccount that does not allow its use, unless it runs already.
		specs = slices.DeleteFunc(specs, func(spec *v1alpha2.MaterializeSpec) bool {
			return spec == &m.Spec && now.Next != spec && now.Spec != spec
		})
	}
	all = append(all, rbacObjects(m, specs)...)
	var failed error
	if now.Image != "" {
		var inFront []*unstructured.Unstructured
		inFront, failed = frontendObjects(m, now)
		all = append(append(all, ToUnstructured(KindService, PublicService(m, now.Selector))), inFront...)
	}
	for _, object := range all {
		SetOwner(m, object)
	}
	return all, failed
}

// rbacObjects let environmentd run its clusters. Several specs count while one generation replaces another; where only one
// can apply, the first does.
func rbacObjects(m *v1alpha2.Materialize, specs []*v1alpha2.MaterializeSpec) []*unstructured.Unstructured {
	if len(specs) == 0 {
		return nil
	}
	n := NamesOf(m)
	metadata := metav1.ObjectMeta{Name: n.Environmentd(), Labels: n.Labels(AppEnvironmentd)}
	var all []*unstructured.Unstructured
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metadata,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: metadata.Name},
	}
	for _, spec := range specs {
		subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: n.serviceAccount(spec), Namespace: m.Namespace}
		if slices.Contains(binding.Subjects, subject) {
			continue
		}
		binding.Subjects = append(binding.Subjects, subject)
		if subject.Name == n.Environmentd() {
			own := metadata
			own.Annotations = specs[0].ServiceAccountAnnotations
			own.Labels = labels.Merge(specs[0].ServiceAccountLabels, own.Labels)
			all = append(all, ToUnstructured(KindServiceAccount, &corev1.ServiceAccount{ObjectMeta: own}))
		}
	}
	role := &rbacv1.Role{ObjectMeta: metadata, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch", "create", "update", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
	}}
	return append(all, ToUnstructured(KindRole, role), ToUnstructured(KindRoleBinding, binding))
}

// frontendObjects are balancerd and the console: of the active version, and otherwise as the current spec says.
func frontendObjects(m *v1alpha2.Materialize, now ActiveConfig) ([]*unstructured.Unstructured, error) {
	n := NamesOf(m)
	spec := m.Spec.DeepCopy()
	if now.Spec != nil {
		spec.PodLabels, spec.PodAnnotations = now.Spec.PodLabels, now.Spec.PodAnnotations
		spec.InternalCertificateSpec = now.Spec.InternalCertificateSpec
	}
	environmentd := n.host(n.Environmentd())
	balancerd := frontend{
		app: AppBalancerd, user: materializeUser, replicas: spec.BalancerdReplicas, resources: spec.BalancerdResourceRequirements,
		ports: []port{{"sql", 6875}, {"http", 6876}, {"internal-http", 8080}},
		args: []string{
			"service", "--pgwire-listen-addr=0.0.0.0:6875", "--https-listen-addr=0.0.0.0:6876", "--internal-http-listen-addr=0.0.0.0:8080",
			fmt.Sprintf("--static-resolver-addr=%s:6875", environmentd), fmt.Sprintf("--https-resolver-template=%s:6876", environmentd),
		},
	}
	if spec.BalancerdExternalCertificateSpec != nil {
		balancerd.secret = n.certificateSecret(certificateBalancerd)
		balancerd.args = append(balancerd.args, "--tls-mode=require", "--tls-cert="+tlsDirectory+"/tls.crt", "--tls-key="+tlsDirectory+"/tls.key")
	}
	if spec.InternalCertificateSpec != nil {
		balancerd.args = append(balancerd.args, "--internal-tls")
	}
	console := frontend{
		app: AppConsole, replicas: spec.ConsoleReplicas, resources: spec.ConsoleResourceRequirements,
		ports: []port{{"http", 8080}},
		env:   []corev1.EnvVar{{Name: "MZ_ENDPOINT", Value: fmt.Sprintf("http://%s:6876", n.host(n.Of(AppBalancerd)))}},
	}
	if spec.BalancerdExternalCertificateSpec != nil {
		console.env[0].Value = fmt.Sprintf("https://%s:6876", n.host(n.Of(AppBalancerd)))
	}
	if spec.ConsoleExternalCertificateSpec != nil {
		console.secret = n.certificateSecret(certificateConsole)
	}
	var all []*unstructured.Unstructured
	for _, p := range []frontend{balancerd, console} {
		image, err := SiblingImage(now.Image, p.app)
		if err != nil {
			return nil, err
		}
		p.image = image
		labels := n.Labels(p.app)
		all = append(all,
			ToUnstructured(KindDeployment, p.deployment(n, spec)),
			ToUnstructured(KindService, service(n.Of(p.app), labels, labels, p.ports...)))
	}
	return all, nil
}

// frontend is balancerd or the console.
type frontend struct {
	app, image string
	replicas   *int32
	resources  *corev1.ResourceRequirements
	ports      []port
	args       []string
	env        []corev1.EnvVar
	// secret of its certificate, empty if it has none.
	secret string
	// user that it runs as, 0 for that of its image.
	user int64
}

func (p frontend) deployment(n Names, spec *v1alpha2.MaterializeSpec) *appsv1.Deployment {
	labels := n.Labels(p.app)
	container := corev1.Container{Name: p.app, Image: p.image, Args: p.args, Env: p.env, Ports: containerPorts(p.ports...)}
	if p.resources != nil {
		container.Resources = *p.resources
	}
	pod := corev1.PodSpec{}
	if p.secret != "" {
		pod.Volumes = []corev1.Volume{secretVolume("tls", p.secret)}
		container.VolumeMounts = []corev1.VolumeMount{{Name: "tls", MountPath: tlsDirectory, ReadOnly: true}}
	}
	pod.Containers = []corev1.Container{container}
	pod.AutomountServiceAccountToken = ptr.To(false)
	restrictPod(&pod, p.user)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: n.Of(p.app), Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(ptr.Deref(p.replicas, v1alpha2.DefaultReplicas)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: podMetadata(spec, labels), Spec: pod},
		},
	}
}

// KeepSubjects adds the existing subjects of a RoleBinding to the desired ones.
func KeepSubjects(want, have *unstructured.Unstructured) *unstructured.Unstructured {
	subjects, _, _ := unstructured.NestedSlice(want.Object, "subjects")
	before, _, err := unstructured.NestedSlice(have.Object, "subjects")
	if err != nil {
		return want
	}
	for _, subject := range before {
		if !slices.ContainsFunc(subjects, func(s any) bool { return equality.Semantic.DeepEqual(s, subject) }) {
			subjects = append(subjects, subject)
		}
	}
	want = want.DeepCopy()
	_ = unstructured.SetNestedSlice(want.Object, subjects, "subjects")
	return want
}

// KeepSelector replaces the selector of a desired Deployment by the existing one, which is immutable. The pods
// carry the labels of both.
func KeepSelector(want, have *unstructured.Unstructured) *unstructured.Unstructured {
	selector, found, err := unstructured.NestedMap(have.Object, "spec", "selector")
	if wanted, _, _ := unstructured.NestedMap(want.Object, "spec", "selector"); err != nil || !found || equality.Semantic.DeepEqual(selector, wanted) {
		return want
	}
	own, _, _ := unstructured.NestedStringMap(want.Object, "spec", "template", "metadata", "labels")
	given, _, _ := unstructured.NestedStringMap(selector, "matchLabels")
	want = want.DeepCopy()
	_ = unstructured.SetNestedMap(want.Object, selector, "spec", "selector")
	_ = unstructured.SetNestedStringMap(want.Object, labels.Merge(given, own), "spec", "template", "metadata", "labels")
	return want
}
