package versions

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/fairlead/fairlead/internal/crds"
	"github.com/fairlead/fairlead/internal/operator"
	"github.com/fairlead/fairlead/internal/operator/lease"
)

// Observe reads the versions of operators and CRDs, as far as the user may. What cannot be read is unknown, and says why.
func Observe(ctx context.Context, config *rest.Config, now time.Time) ([]Operator, CRDs) {
	operators, err := readOperators(ctx, config, now)
	if err != nil {
		operators = []Operator{{Unknown: reason(err)}}
	}
	schemas, err := readSchemas(ctx, config)
	if err != nil {
		return operators, CRDs{Unknown: reason(err)}
	}
	return operators, CRDs{Schemas: schemas}
}

// Unknown is a cluster that could not be asked.
func Unknown(err error) ([]Operator, CRDs) {
	return []Operator{{Unknown: reason(err)}}, CRDs{Unknown: reason(err)}
}

func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "the API server did not answer in time"
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

// readOperators reads the leases of all passages.
func readOperators(ctx context.Context, config *rest.Config, now time.Time) ([]Operator, error) {
	client, err := coordination.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	leases := map[string]*coordinationv1.Lease{}
	for _, passage := range operator.Names() {
		held, err := client.Leases(lease.Namespace).Get(ctx, lease.Name(passage), metav1.GetOptions{})
		switch {
		case apierrors.IsForbidden(err):
			return nil, fmt.Errorf("you may not get the Lease %s/%s", lease.Namespace, lease.Name(passage))
		case err == nil:
			leases[passage] = held
		case !apierrors.IsNotFound(err):
			return nil, err
		}
	}
	return operatorsOf(leases, now), nil
}

func readSchemas(ctx context.Context, config *rest.Config) ([]crds.Schema, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	list, err := client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		return nil, errors.New("you may not list CustomResourceDefinitions")
	}
	if err != nil {
		return nil, err
	}
	return crds.CompareSchemas(list.Items)
}
