package adoption_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	workv1alpha2 "github.com/fairlead/fairlead/api/work/v1alpha2"
	"github.com/fairlead/fairlead/test/harness"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// join has a member join again that a test has let go.
func (w *world) join(t testing.TB, name string) {
	t.Helper()
	wait.Until(t, func(context.Context) error {
		r := harness.RunCommand(t, w.hub.Cluster, "join", name, "--member-kubeconfig", w.members[name].Kubeconfig())
		switch err := errors.New(r.Stderr); {
		case r.Code == 0:
			return nil
		case strings.Contains(strings.Join(strings.Fields(r.Stderr), " "), "the namespace is still being deleted"):
			// The command waits a minute for it, and is to be run again.
			return err
		default:
			return wait.Permanent(err)
		}
	})
	w.becomes(t, name, metav1.ConditionTrue, "the API server responds")
	if err := w.awaitRole(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

// left checks that nothing of a cluster is left on the hub.
func (w *world) left(t testing.TB, name string) {
	t.Helper()
	wait.Until(t, func(ctx context.Context) error { return w.leftHub(ctx, name) })
}

// leftHub is an error while the hub has anything of a cluster.
func (w *world) leftHub(ctx context.Context, name string) error {
	for _, object := range []client.Object{
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: name}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-" + name}},
	} {
		if err := w.hub.Get(ctx, client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			return errors.Join(fmt.Errorf("%T %s is still there", object, object.GetName()), err)
		}
	}
	return nil
}

// A cluster that leaves keeps what it runs, and nothing there speaks of the hub. It can join again at once, while what it had
// on the hub is still going.
func TestUnjoinAndJoin(t *testing.T) {
	s := newStage(t)
	east := s.members[member2]
	s.create(t, east, deployment("cart"))
	before := s.running(t, east, "cart")
	s.create(t, s.hub, deployment("cart"), configMap("made"), policy("apps/v1", "Deployment", everywhere, overwrite))
	made := policy("v1", "ConfigMap", everywhere)
	made.Name = "made"
	s.create(t, s.hub, made)
	s.says(t, "cart-deployment", applied, "all 2 clusters")
	s.says(t, "made-configmap", applied, "all 2 clusters")

	r := harness.RunCommand(t, s.hub.Cluster, "unjoin", member2, "--member-kubeconfig", east.Kubeconfig(), "--yes", "--timeout", wait.Deadline().String())
	defer s.join(t, member2)
	if r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	now := s.running(t, east, "cart")
	if err := isClean(now); err != nil || now.UID != before.UID || now.Generation != before.Generation {
		t.Errorf("generation %d became %d: %v", before.Generation, now.Generation, err)
	}
	left := configMap("made")
	s.read(t, east, left)
	if err := isClean(left); err != nil {
		t.Error(err)
	}
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "fairlead-member"}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "fairlead-member-common"}},
	} {
		if err := east.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			t.Errorf("ClusterRole %s is still there: %v", object.GetName(), err)
		}
	}

	s.join(t, member2)
	s.says(t, "cart-deployment", applied, "all 2 clusters")
	s.trouble(t, member2, "made-configmap", "made", conflict, "exists in cluster member2 already")
	s.changePolicy(t, made, overwrite)
	s.says(t, "made-configmap", applied, "all 2 clusters")
}

// A cluster that leaves with its resources loses what the hub manages, and nothing else.
func TestUnjoinAndDelete(t *testing.T) {
	s := newStage(t)
	east := s.members[member2]
	s.create(t, east, configMap("own"))
	s.create(t, s.hub, configMap("it"), policy("v1", "ConfigMap", everywhere))
	s.says(t, "it-configmap", applied, "all 2 clusters")
	r := harness.RunCommand(t, s.hub.Cluster, "unjoin", member2, "--delete-resources", "--yes", "--timeout", wait.Deadline().String())
	defer s.join(t, member2)
	if r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	s.left(t, member2)
	s.gone(t, east, configMap("it"))
	s.read(t, east, configMap("own"))
	s.read(t, s.members[member1], configMap("it"))
	if !strings.Contains(r.Stdout, "left in the cluster: ClusterRole fairlead-member") {
		t.Error(r.Stdout)
	}

	// The policy still lists the cluster, and says so; when it joins, it gets what the policy takes.
	s.tells(t, "everything", "ClusterNotJoined", "have not joined the hub, or are leaving it: member2;", "all 1 resources are applied in the clusters that have joined")
	s.shows(t, 1, statusOfPolicy, "member2")
	s.enter(t, 1, "plan pp everything -n NS", "member2")
	s.join(t, member2)
	s.tells(t, "everything", "Applied", "all 1 resources are applied in all of their clusters")
	s.read(t, east, configMap("it"))
}

// A cluster that nobody can reach leaves as it is when that is asked for.
func TestUnjoinUnreachable(t *testing.T) {
	s := newStage(t)
	east := s.members[member2]
	s.create(t, s.hub, configMap("it"), policy("v1", "ConfigMap", everywhere))
	s.says(t, "it-configmap", applied, "all 2 clusters")
	heal := east.cut(t)
	s.becomes(t, member2, metav1.ConditionFalse, "does not respond as expected")
	defer func() { heal(); s.join(t, member2) }()
	command := harness.StartCommand(t, s.hub.Cluster, "unjoin", member2, "--yes", "--timeout", wait.Deadline().String())
	wait.Until(t, func(context.Context) error {
		if said := command.Stderr.Since(0); !strings.Contains(said, "objects not yet released") {
			return fmt.Errorf("it does not wait yet: %s", said)
		}
		return nil
	})
	command.Interrupt()
	r := command.Wait()
	if r.Code != 1 || !strings.Contains(r.Stderr, "cannot be reached") || !strings.Contains(r.Stderr, "--force") {
		t.Errorf("it ended with %d: %s", r.Code, r.Stderr)
	}
	if r := harness.RunCommand(t, s.hub.Cluster, "unjoin", member2, "--yes", "--force", "--timeout", wait.Deadline().String()); r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	s.left(t, member2)
	heal()
	now := configMap("it")
	s.until(t, east, now, func() error { return nil })
	if !isMarked(now) {
		t.Errorf("it was written to: %v", now.Labels)
	}
}

// A token is renewed when a third of its time is left, and one that was taken back is told.
func TestTokens(t *testing.T) {
	s := newStage(t)
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: "karmada-cluster", Name: member2}
	if err := s.hub.Get(t.Context(), key, secret); err != nil {
		t.Fatal(err)
	}
	token := string(secret.Data["token"])
	edit := func(change func()) {
		wait.Until(t, func(ctx context.Context) error {
			if err := s.hub.Get(ctx, key, secret); err != nil {
				return err
			}
			change()
			return s.hub.Update(ctx, secret)
		})
	}
	t.Run("renewed", func(t *testing.T) {
		now := time.Now().UTC()
		edit(func() {
			secret.Annotations["fairlead.dev/issued"] = now.Add(-20 * time.Hour).Format(time.RFC3339)
			secret.Annotations["fairlead.dev/expires"] = now.Add(9 * time.Hour).Format(time.RFC3339)
		})
		wait.Until(t, func(ctx context.Context) error {
			if err := s.hub.Get(ctx, key, secret); err != nil {
				return err
			}
			if string(secret.Data["token"]) == token {
				return errors.Join(errors.New("it is the old token"), s.ask(ctx, member2))
			}
			return nil
		})
		expires, err := time.Parse(time.RFC3339, secret.Annotations["fairlead.dev/expires"])
		if err != nil || time.Until(expires) < 24*time.Hour {
			t.Errorf("it expires at %s: %v", expires, err)
		}
		s.create(t, s.hub, configMap("it"), policy("v1", "ConfigMap", everywhere))
		s.says(t, "it-configmap", applied, "all 2 clusters")
	})
	t.Run("of no other account", func(t *testing.T) {
		config := rest.AnonymousClientConfig(s.members[member2].Config())
		config.BearerToken = string(secret.Data["token"])
		kube, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		_, err = kube.CoreV1().ServiceAccounts("kube-system").CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("the hub gets it: %v", err)
		}
	})
	t.Run("taken back", func(t *testing.T) {
		edit(func() { secret.Data["token"] = []byte("expired") })
		s.becomes(t, member2, metav1.ConditionFalse, "`fairlead join member2 --member-kubeconfig FILE` gets a new one")
		s.create(t, s.hub, configMap("later"))
		s.says(t, "later-configmap", failed, "waiting until cluster member2 can be reached")
		s.join(t, member2)
		s.says(t, "later-configmap", applied, "all 2 clusters")
	})
}

// A cluster joins once, under one name.
func TestJoinTwice(t *testing.T) {
	s := newStage(t)
	r := harness.RunCommand(t, s.hub.Cluster, "join", "another", "--member-kubeconfig", s.members[member1].Kubeconfig())
	if r.Code != 1 || !strings.Contains(r.Stderr, "this cluster has joined as member1 already") {
		t.Errorf("it ended with %d: %s", r.Code, r.Stderr)
	}
	r = harness.RunCommand(t, s.hub.Cluster, "join", member1, "--member-kubeconfig", s.members[member2].Kubeconfig())
	if r.Code != 1 || !strings.Contains(r.Stderr, "joined as member") {
		t.Errorf("it ended with %d: %s", r.Code, r.Stderr)
	}
	r = harness.RunCommand(t, s.hub.Cluster, "join", "itself", "--member-kubeconfig", s.hub.Kubeconfig())
	if r.Code != 1 || !strings.Contains(r.Stderr, "this cluster is the hub itself") {
		t.Errorf("it ended with %d: %s", r.Code, r.Stderr)
	}
}

// A binding whose cluster is gone for good does not wait for it when that is asked for. What can be reached is deleted as ever, and
// the cluster keeps what it has.
func TestAbandonBinding(t *testing.T) {
	s := newStage(t)
	east := s.members[member2]
	s.create(t, s.hub, configMap("it"), configMap("other"), policy("v1", "ConfigMap", everywhere))
	s.says(t, "it-configmap", applied, "all 2 clusters")
	s.says(t, "other-configmap", applied, "all 2 clusters")
	heal := east.cut(t)
	s.becomes(t, member2, metav1.ConditionFalse, "does not respond as expected")
	defer heal()
	for _, name := range []string{"it", "other"} {
		s.remove(t, s.hub, configMap(name))
	}
	s.gone(t, s.members[member1], configMap("it"))
	s.gone(t, s.members[member1], configMap("other"))
	binding := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "it-configmap"}}
	s.read(t, s.hub, binding)
	if binding.DeletionTimestamp == nil {
		t.Error("the binding is not being deleted")
	}
	s.change(t, s.hub, binding, func() {
		metav1.SetMetaDataAnnotation(&binding.ObjectMeta, "fairlead.dev/abandon", "true")
	})
	s.gone(t, s.hub, binding)
	s.read(t, s.hub, &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "other-configmap"}})
	heal()
	s.becomes(t, member2, metav1.ConditionTrue, "the API server responds")
	s.gone(t, east, configMap("other"))
	s.read(t, east, configMap("it"))
}
