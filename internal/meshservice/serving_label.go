package meshservice

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// LabelServing is "true" on the operator's pod that serves xDS: the leader.
const LabelServing = "fairlead.dev/serves-mesh"

// labelServingPod labels the operator's own pod, and removes the label from all others: a previous leader may have crashed.
func labelServingPod(ctx context.Context, pods client.Reader, writer client.Writer, own string) error {
	namespace, name, _ := strings.Cut(own, "/")
	var marked corev1.PodList
	if err := pods.List(ctx, &marked, client.InNamespace(namespace), client.MatchingLabels{LabelServing: "true"}); err != nil {
		return fmt.Errorf("list the pods in %s with label %s: %w", namespace, LabelServing, err)
	}
	for _, pod := range marked.Items {
		if pod.Name == name {
			continue
		}
		if err := patchServingLabel(ctx, writer, namespace, pod.Name, "null"); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove the serving label from pod %s/%s: %w", namespace, pod.Name, err)
		}
	}
	if err := patchServingLabel(ctx, writer, namespace, name, `"true"`); err != nil {
		return fmt.Errorf("add the serving label to pod %s: %w", own, err)
	}
	return nil
}

func patchServingLabel(ctx context.Context, writer client.Writer, namespace, name, value string) error {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = namespace, name
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, LabelServing, value)
	return writer.Patch(ctx, pod, client.RawPatch("application/merge-patch+json", patch))
}
