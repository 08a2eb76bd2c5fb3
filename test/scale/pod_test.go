package scale_test

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// injectedPod has the shape that a pod of an ordinary service has after injection.
func injectedPod(owner *appsv1.ReplicaSet, i int, revision string) *corev1.Pod {
	labels := map[string]string{
		"security.istio.io/tlsMode":           "istio",
		"service.istio.io/canonical-name":     "checkout",
		"service.istio.io/canonical-revision": "v1",
	}
	for key, value := range owner.Spec.Template.Labels {
		labels[key] = value
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: owner.Namespace, Name: podName(i), GenerateName: owner.Name + "-",
			Labels: labels,
			Annotations: map[string]string{
				v1.AnnotationRevision:                          revision,
				"kubectl.kubernetes.io/default-container":      "checkout",
				"kubectl.kubernetes.io/default-logs-container": "checkout",
				"prometheus.io/path":                           "/stats/prometheus",
				"prometheus.io/port":                           "15020",
				"prometheus.io/scrape":                         "true",
				"sidecar.istio.io/status": `{"initContainers":["istio-init"],"containers":["istio-proxy"],"volumes":["workload-socket",` +
					`"credential-socket","workload-certs","istio-envoy","istio-data","istio-podinfo","istio-token","istiod-ca-cert"],` +
					`"imagePullSecrets":null,"revision":"` + revision + `"}`,
			},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		},
		Spec: corev1.PodSpec{
			ServiceAccountName: "default",
			InitContainers:     []corev1.Container{initContainer()},
			Containers:         []corev1.Container{appContainer(), proxyContainer()},
			Volumes:            volumes(),
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: ptr.To(int64(300))},
				{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: ptr.To(int64(300))},
			},
		},
	}
}

func podName(i int) string { return fmt.Sprintf("checkout-7d9f8c6b5d-%05d", i) }

func appContainer() corev1.Container {
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(8080)}},
			PeriodSeconds:    10,
			FailureThreshold: 3,
		}
	}
	return corev1.Container{
		Name:  "checkout",
		Image: "registry.example.org/shop/checkout:v1.42.7",
		Args:  []string{"--listen=:8080", "--log-level=info"},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}, {Name: "metrics", ContainerPort: 9090}},
		Env: []corev1.EnvVar{
			{Name: "DATABASE_HOST", Value: "postgres.databases.svc.cluster.local"},
			{Name: "DATABASE_NAME", Value: "checkout"},
			{Name: "DATABASE_PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "checkout-database"}, Key: "password",
			}}},
			{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: "http://collector.observability.svc.cluster.local:4317"},
			{Name: "FEATURE_FLAGS", Value: "express-checkout,gift-cards,new-tax-rules"},
			{Name: "GOMEMLIMIT", Value: "230MiB"},
		},
		Resources:      resources("100m", "256Mi"),
		LivenessProbe:  probe("/healthz"),
		ReadinessProbe: probe("/readyz"),
		VolumeMounts:   []corev1.VolumeMount{{Name: "config", MountPath: "/etc/checkout"}, {Name: "tmp", MountPath: "/tmp"}},
	}
}

func proxyContainer() corev1.Container {
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
	}
	return corev1.Container{
		Name:  "istio-proxy",
		Image: "docker.io/istio/proxyv2:1.24.0",
		Args: []string{
			"proxy", "sidecar", "--domain", "$(POD_NAMESPACE).svc.cluster.local",
			"--proxyLogLevel=warning", "--proxyComponentLogLevel=misc:error", "--log_output_level=default:info",
		},
		Ports: []corev1.ContainerPort{{Name: "http-envoy-prom", ContainerPort: 15090, Protocol: "TCP"}},
		Env: []corev1.EnvVar{
			{Name: "PILOT_CERT_PROVIDER", Value: "istiod"},
			{Name: "CA_ADDR", Value: "istiod-default-v1-24-0.istio-system.svc:15012"},
			field("POD_NAME", "metadata.name"),
			field("POD_NAMESPACE", "metadata.namespace"),
			field("INSTANCE_IP", "status.podIP"),
			field("SERVICE_ACCOUNT", "spec.serviceAccountName"),
			field("HOST_IP", "status.hostIP"),
			{Name: "ISTIO_META_CLUSTER_ID", Value: "Kubernetes"},
			{Name: "ISTIO_META_APP_CONTAINERS", Value: "checkout"},
			{Name: "ISTIO_META_INTERCEPTION_MODE", Value: "REDIRECT"},
			{Name: "ISTIO_META_WORKLOAD_NAME", Value: "checkout"},
			{Name: "ISTIO_META_MESH_ID", Value: "cluster.local"},
			{Name: "ISTIO_META_POD_PORTS", Value: `[{"name":"http","containerPort":8080},{"name":"metrics","containerPort":9090}]`},
			{Name: "PROXY_CONFIG", Value: `{"discoveryAddress":"istiod-default-v1-24-0.istio-system.svc:15012"}` + "\n"},
			{Name: "TRUST_DOMAIN", Value: "cluster.local"},
		},
		Resources: resources("100m", "1Gi"),
		StartupProbe: &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz/ready", Port: intstr.FromInt32(15021)}},
			PeriodSeconds: 1, TimeoutSeconds: 3, FailureThreshold: 600,
		},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz/ready", Port: intstr.FromInt32(15021)}},
			PeriodSeconds: 15, TimeoutSeconds: 3, FailureThreshold: 4,
		},
		SecurityContext: security(1337),
		VolumeMounts: []corev1.VolumeMount{
			{Name: "workload-socket", MountPath: "/var/run/secrets/workload-spiffe-uds"},
			{Name: "credential-socket", MountPath: "/var/run/secrets/credential-uds"},
			{Name: "workload-certs", MountPath: "/var/run/secrets/workload-spiffe-credentials"},
			{Name: "istiod-ca-cert", MountPath: "/var/run/secrets/istio"},
			{Name: "istio-data", MountPath: "/var/lib/istio/data"},
			{Name: "istio-envoy", MountPath: "/etc/istio/proxy"},
			{Name: "istio-token", MountPath: "/var/run/secrets/tokens"},
			{Name: "istio-podinfo", MountPath: "/etc/istio/pod"},
		},
	}
}

func initContainer() corev1.Container {
	return corev1.Container{
		Name:  "istio-init",
		Image: "docker.io/istio/proxyv2:1.24.0",
		Args: []string{
			"istio-iptables", "-p", "15001", "-z", "15006", "-u", "1337", "-m", "REDIRECT", "-i", "*", "-x", "",
			"-b", "*", "-d", "15090,15021,15020", "--log_output_level=default:info",
		},
		Resources:       resources("100m", "1Gi"),
		SecurityContext: security(0),
	}
}

func security(user int64) *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		Privileged:               ptr.To(false),
		ReadOnlyRootFilesystem:   ptr.To(true),
		RunAsGroup:               ptr.To(user),
		RunAsNonRoot:             ptr.To(user > 0),
		RunAsUser:                ptr.To(user),
	}
}

func resources(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("128Mi")},
		Limits:   corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse(memory)},
	}
}

func volumes() []corev1.Volume {
	empty := func(name string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	}
	config := func(name, from string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: from},
		}}}
	}
	return []corev1.Volume{
		config("config", "checkout-config"), empty("tmp"),
		empty("workload-socket"), empty("credential-socket"), empty("workload-certs"), empty("istio-envoy"), empty("istio-data"),
		{Name: "istio-podinfo", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
			Items: []corev1.DownwardAPIVolumeFile{
				{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
				{Path: "annotations", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations"}},
			},
		}}},
		{Name: "istio-token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
				Audience: "istio-ca", ExpirationSeconds: ptr.To(int64(43200)), Path: "istio-token",
			}}},
		}}},
		config("istiod-ca-cert", "istio-ca-root-cert"),
	}
}

// runningStatus is what a kubelet writes once all containers are ready.
func runningStatus(pod *corev1.Pod, i int) corev1.PodStatus {
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	ip := fmt.Sprintf("10.%d.%d.%d", 64+i>>16, i>>8&255, i&255)
	status := corev1.PodStatus{
		Phase:     corev1.PodRunning,
		QOSClass:  pod.Status.QOSClass,
		HostIP:    "10.0.0.17",
		HostIPs:   []corev1.HostIP{{IP: "10.0.0.17"}},
		PodIP:     ip,
		PodIPs:    []corev1.PodIP{{IP: ip}},
		StartTime: &now,
	}
	for _, kind := range []corev1.PodConditionType{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: "True", LastTransitionTime: now})
	}
	container := func(c corev1.Container, state corev1.ContainerState) corev1.ContainerStatus {
		return corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: ptr.To(true), State: state,
			ImageID:     c.Image + "@sha256:45be1f1c8bd5c1d2d3f9a6c6b7f1e8e2c1a5b6d7e8f90123456789abcdef0123",
			ContainerID: fmt.Sprintf("containerd://%064x", i),
		}
	}
	for _, c := range pod.Spec.InitContainers {
		status.InitContainerStatuses = append(status.InitContainerStatuses, container(c, corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now},
		}))
	}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, container(c, corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: now},
		}))
	}
	return status
}
