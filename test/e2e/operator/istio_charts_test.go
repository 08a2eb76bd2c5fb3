package operator_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestChartVerifiesIstioCharts: the keys are mounted where the flags say, and nothing is asked for without them.
func TestChartVerifiesIstioCharts(t *testing.T) {
	for value, want := range map[string]struct{ flag, directory string }{
		"keyringSecret": {"--chart-keyring=/etc/fairlead/keyring/keyring.gpg", "/etc/fairlead/keyring"},
		"cosignSecret":  {"--chart-cosign-key=/etc/fairlead/cosign/cosign.pub", "/etc/fairlead/cosign"},
	} {
		for _, secret := range []string{"", "keys"} {
			var deployment appsv1.Deployment
			rendered(t, map[string]any{"istioCharts": map[string]any{value: secret}}).find(t, "Deployment", "fairlead", &deployment)
			pod := deployment.Spec.Template.Spec
			if got := slices.Contains(pod.Containers[0].Args, want.flag); got != (secret != "") {
				t.Errorf("%s %q: the flag is there: %t", value, secret, got)
			}
			mounted := slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
				return m.MountPath == want.directory && m.ReadOnly && slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
					return v.Name == m.Name && v.Secret != nil && v.Secret.SecretName == secret
				})
			})
			if mounted != (secret != "") {
				t.Errorf("%s %q: it is mounted: %t", value, secret, mounted)
			}
		}
	}
}
