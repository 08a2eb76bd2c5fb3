package member

import (
	"fmt"
	"strings"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
)

// unsupportedFieldError is a Cluster with fields that the schema takes and that the hub does not connect by.
type unsupportedFieldError struct{ message string }

func (e *unsupportedFieldError) Error() string { return e.message }

// checkSupported finds fields of a Cluster that are not supported. The hub does not connect to such a cluster.
func checkSupported(c *clusterv1alpha1.Cluster) error {
	var all []string
	for _, f := range []struct {
		set          bool
		path, remedy string
	}{
		{c.Spec.SyncMode == clusterv1alpha1.SyncPull, "spec.syncMode: Pull", "join the cluster with `fairlead join " + c.Name + "`, which uses Push"},
		{c.Spec.InsecureSkipTLSVerification, "spec.insecureSkipTLSVerification", "remove the field, and put the certificate authority of the API server into the Secret"},
		{c.Spec.ProxyURL != "", "spec.proxyURL", "remove the field, and give an apiEndpoint that the hub can reach"},
		{len(c.Spec.ProxyHeader) > 0, "spec.proxyHeader", "remove the field"},
	} {
		if f.set {
			all = append(all, fmt.Sprintf("%s is not supported: %s", f.path, f.remedy))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return &unsupportedFieldError{strings.Join(all, "; ")}
}
