package egress

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
)

// ByService resolves addresses through the Services of the cluster. A Service
// is read anew at each connection: connections are few, and a Service that was
// deleted and made again has another IP.
func ByService(client kubernetes.Interface, serves func() []clusterdir.Serve) Resolve {
	return func(ctx context.Context, address netip.AddrPort) (string, bool, error) {
		for _, s := range serves() {
			if s.Port != int32(address.Port()) {
				continue
			}
			service, err := client.CoreV1().Services(s.Namespace).Get(ctx, s.Service, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return "", false, fmt.Errorf("get Service %s/%s: %w", s.Namespace, s.Service, err)
			}
			if slices.Contains(append(service.Spec.ClusterIPs, service.Spec.ClusterIP), address.Addr().String()) {
				return s.To, true, nil
			}
		}
		return "", false, nil
	}
}
