package inventory

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/revision/usage"
)

const (
	kindCronJob     = "CronJob"
	kindDaemonSet   = "DaemonSet"
	kindDeployment  = "Deployment"
	kindNamespace   = "Namespace"
	kindPod         = "Pod"
	kindStatefulSet = "StatefulSet"
)

// kinds are the kinds of workloads that can be moved, with an empty object of each.
var kinds = []kind{
	{kindDaemonSet, &appsv1.DaemonSet{}},
	{kindDeployment, &appsv1.Deployment{}},
	{kindStatefulSet, &appsv1.StatefulSet{}},
}

type kind struct {
	name   string
	object client.Object
}

// CacheOptions cache the workloads that can be moved, each as a Workload, and the others as the package usage reads them. A
// Tracker keeps what is in the cache, without a copy.
func CacheOptions() map[client.Object]cache.ByObject {
	options := map[client.Object]cache.ByObject{}
	for _, k := range kinds {
		options[k.object] = cache.ByObject{
			Label: labels.Everything(), Field: fields.Everything(),
			Transform: func(object any) (any, error) {
				if w := From(object); w != nil {
					return w, nil
				}
				return object, nil
			},
		}
	}
	return usage.TemplateCacheOptions(options)
}
