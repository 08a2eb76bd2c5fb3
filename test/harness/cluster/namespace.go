package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// given are the names that tests of this binary have: a random number is not
// always another one.
var given sync.Map

// Name is one that no other test uses, for objects that have no namespace.
func Name(t testing.TB) string {
	last := t.Name()[strings.LastIndex(t.Name(), "/")+1:]
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, last)
	for {
		name := fmt.Sprintf("%s-%05x", strings.Trim(clean[:min(len(clean), 30)], "-"), rand.IntN(1<<20))
		if _, taken := given.LoadOrStore(name, true); !taken {
			return name
		}
	}
}

// Namespace makes one for the test, removed at its end unless the cluster keeps
// them.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	name := Name(t)
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create namespace %s: %v", name, err)
	}
	if c.keepNamespaces {
		return name
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if err := client.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete namespace %s: %v", name, err)
		}
	})
	return name
}
