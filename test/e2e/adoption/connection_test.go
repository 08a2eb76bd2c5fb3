package adoption_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/faults"
)

// A list of the objects in a member has those of all pages, and of no other namespace or label. Of a list that breaks off after a
// page, nothing is returned.
func TestListPages(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const count = 501 // one more than there are in a page
	var creations errgroup.Group
	creations.SetLimit(16)
	for i := range count {
		creations.Go(func() error {
			c := configMap(fmt.Sprintf("c%04d", i))
			c.Namespace, c.Labels = s.namespace, map[string]string{"example.com/listed": "true"}
			return s.members[member1].Create(t.Context(), c)
		})
	}
	if err := creations.Wait(); err != nil {
		t.Fatal(err)
	}
	s.create(t, s.members[member1], configMap("unlabelled"))
	elsewhere := configMap(s.namespace)
	elsewhere.Namespace, elsewhere.Labels = metav1.NamespaceDefault, map[string]string{"example.com/listed": "true"}
	if err := s.members[member1].Create(t.Context(), elsewhere); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.members[member1].Delete(context.Background(), elsewhere) })
	m, err := member.ConnectByName(t.Context(), s.hub, member1)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Stop()
	mapping := &meta.RESTMapping{
		Resource:         corev1.SchemeGroupVersion.WithResource("configmaps"),
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Scope: meta.RESTScopeNamespace,
	}
	listed := labels.SelectorFromSet(labels.Set{"example.com/listed": "true"})
	all, err := m.List(t.Context(), mapping, s.namespace, listed)
	names := map[string]bool{}
	for _, object := range all {
		names[object.GetName()] = true
	}
	if err != nil || len(all) != count || len(names) != count || names["unlabelled"] {
		t.Errorf("%d objects of %d names, %v", len(all), len(names), err)
	}

	line := faults.New(faults.Rule{Match: faults.To("configmaps", "list"), Nth: 2, Action: faults.Expired()})
	if m.API, err = client.New(line.Config(m.Config), client.Options{}); err != nil {
		t.Fatal(err)
	}
	all, err = m.List(t.Context(), mapping, s.namespace, listed)
	if all != nil || !apierrors.IsResourceExpired(err) || !strings.HasPrefix(err.Error(), "list configmaps in cluster member1: ") {
		t.Errorf("half a list of %d objects, %v", len(all), err)
	}
}
