package objects

import (
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

// The ports of environmentd.
var environmentdPorts = []port{
	{"sql", 6875}, {"http", 6876}, {"internal-sql", 6877}, {"internal-http", 6878},
}

var pubsubPort = port{"persist-pubsub", 6879}

const (
	tlsDirectory     = "/etc/materialize/tls"
	scratchDirectory = "/scratch"
	paramsDirectory  = "/etc/materialize/system-params"
)

type port struct {
	name   string
	number int32
}

func containerPorts(ports ...port) []corev1.ContainerPort {
	var all []corev1.ContainerPort
	for _, p := range ports {
		all = append(all, corev1.ContainerPort{Name: p.name, ContainerPort: p.number, Protocol: corev1.ProtocolTCP})
	}
	return all
}

// EnvironmentdStatefulSet is the StatefulSet of one generation.
func EnvironmentdStatefulSet(m *v1alpha2.Materialize, g int64) *appsv1.StatefulSet {
	n, spec := NamesOf(m), &m.Spec
	labels := n.GenerationLabels(g)
	container := corev1.Container{
		Name:  AppEnvironmentd,
		Image: spec.EnvironmentdImageRef,
		Args:  append(environmentdArgs(m, g), spec.EnvironmentdExtraArgs...),
		Env:   lastByName(append(environmentdEnv(spec), spec.EnvironmentdExtraEnv...)),
		Ports: containerPorts(append(environmentdPorts, pubsubPort)...),
		// Readiness is for the StatefulSet; whether environmentd has caught up is asked for separately.
		ReadinessProbe: &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: "/api/readyz", Port: intstr.FromString("internal-http"), Scheme: corev1.URISchemeHTTP,
			}},
			PeriodSeconds: 2, TimeoutSeconds: 5, FailureThreshold: 3,
		},
	}
	if spec.EnvironmentdResourceRequirements != nil {
		container.Resources = *spec.EnvironmentdResourceRequirements
	}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: n.Generation(g), Labels: labels},
		Spec: appsv1.StatefulSetSpec{
			Replicas:            ptr.To[int32](1),
			ServiceName:         n.Generation(g),
			PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector:            &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: podMetadata(spec, labels),
				Spec: corev1.PodSpec{
					ServiceAccountName: n.serviceAccount(spec),
				},
			},
		},
	}
	pod := &set.Spec.Template.Spec
	mount := func(name, path string) {
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path})
	}
	if spec.InternalCertificateSpec != nil {
		pod.Volumes = append(pod.Volumes, secretVolume("tls", n.certificateSecret(certificateInternal)))
		mount("tls", tlsDirectory)
	}
	if name := spec.SystemParameterConfigmapName; name != "" {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "system-params", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
		}})
		mount("system-params", paramsDirectory)
	}
	if size := spec.EnvironmentdScratchVolumeStorageRequirement; size != nil {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "scratch", Labels: labels},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *size}},
			},
		}}
		// Its data is of no use to other generations.
		set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
			WhenScaled:  appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
		}
		mount("scratch", scratchDirectory)
	}
	pod.Containers = []corev1.Container{container}
	restrictPod(pod, materializeUser)
	return set
}

func environmentdArgs(m *v1alpha2.Materialize, g int64) []string {
	n, spec := NamesOf(m), &m.Spec
	listen := func(name string, port int32) string { return fmt.Sprintf("--%s-listen-addr=0.0.0.0:%d", name, port) }
	args := []string{
		"--deploy-generation=" + strconv.FormatInt(g, 10),
		"--environment-id=" + string(EnvironmentID(m)),
	}
	for _, p := range environmentdPorts {
		args = append(args, listen(p.name, p.number))
	}
	args = append(args,
		listen("internal-persist-pubsub", pubsubPort.number),
		fmt.Sprintf("--persist-pubsub-url=http://%s:%d", n.host(n.PubSub(g)), pubsubPort.number),
		"--orchestrator=kubernetes",
		"--orchestrator-kubernetes-service-account="+n.serviceAccount(spec),
		"--orchestrator-kubernetes-name-prefix="+n.Of(""),
		fmt.Sprintf("--system-parameter-default=enable_rbac_checks=%t", spec.EnableRbac),
	)
	if kind := spec.AuthenticatorKind; kind != "" && kind != v1alpha2.AuthenticatorNone {
		args = append(args, "--authenticator-kind="+string(kind))
	}
	if arn := spec.EnvironmentdConnectionRoleArn; arn != "" {
		args = append(args, "--aws-connection-role-arn="+arn)
	}
	if spec.InternalCertificateSpec != nil {
		args = append(args, "--tls-mode=require", "--tls-cert="+tlsDirectory+"/tls.crt", "--tls-key="+tlsDirectory+"/tls.key")
	}
	if spec.SystemParameterConfigmapName != "" {
		args = append(args, "--config-sync-file-path="+paramsDirectory+"/system-params.json")
	}
	if spec.EnvironmentdScratchVolumeStorageRequirement != nil {
		args = append(args, "--scratch-directory="+scratchDirectory)
	}
	return args
}

// environmentdEnv holds secrets, which must not appear in arguments.
func environmentdEnv(spec *v1alpha2.MaterializeSpec) []corev1.EnvVar {
	secret := func(variable, key string) corev1.EnvVar {
		return corev1.EnvVar{Name: variable, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: spec.BackendSecretName}, Key: key,
		}}}
	}
	return []corev1.EnvVar{
		secret("MZ_METADATA_BACKEND_URL", "metadata_backend_url"),
		secret("MZ_PERSIST_BLOB_URL", "persist_backend_url"),
	}
}

// lastByName leaves out variables that are set again later, which the API server would reject.
func lastByName(env []corev1.EnvVar) []corev1.EnvVar {
	var kept []corev1.EnvVar
	for i, variable := range env {
		if !slices.ContainsFunc(env[i+1:], func(later corev1.EnvVar) bool { return later.Name == variable.Name }) {
			kept = append(kept, variable)
		}
	}
	return kept
}

// podMetadata has the labels of the spec, which cannot override those that Services select by.
func podMetadata(spec *v1alpha2.MaterializeSpec, selected map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Labels: labels.Merge(spec.PodLabels, selected), Annotations: spec.PodAnnotations}
}

func secretVolume(name, secret string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}}
}
