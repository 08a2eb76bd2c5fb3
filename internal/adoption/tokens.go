package adoption

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
)

// TokenLifetime is how long the token of a cluster is asked for. The cluster may grant less.
const TokenLifetime = 30 * 24 * time.Hour

// What is known about the token in a Secret.
const (
	// AnnotationIssued has since when it is good.
	AnnotationIssued = "fairlead.dev/issued"
	// AnnotationExpires has until when.
	AnnotationExpires = "fairlead.dev/expires"
	// AnnotationAccount has the ServiceAccount in the cluster that it is one of.
	AnnotationAccount = "fairlead.dev/account"
)

// askForToken gets a new token for an account of the hub in a cluster.
func askForToken(ctx context.Context, member *rest.Config, account string) (authenticationv1.TokenRequestStatus, error) {
	kube, err := kubernetes.NewForConfig(member)
	if err != nil {
		return authenticationv1.TokenRequestStatus{}, fmt.Errorf("connect to the cluster: %w", err)
	}
	token, err := kube.CoreV1().ServiceAccounts(MemberNamespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(TokenLifetime / time.Second))},
	}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.TokenRequestStatus{}, fmt.Errorf("ask the cluster for a token: %w", err)
	}
	return token.Status, nil
}

// store writes a token into a Secret.
func store(secret *corev1.Secret, account string, token authenticationv1.TokenRequestStatus, now time.Time) {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[secretToken] = []byte(token.Token)
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, AnnotationAccount, account)
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, AnnotationIssued, now.UTC().Format(time.RFC3339))
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, AnnotationExpires, token.ExpirationTimestamp.UTC().Format(time.RFC3339))
}

// due tells whether the token in a Secret should be renewed: a third of its time is left, or less. Of one that somebody else
// has put there nothing is known.
func due(secret *corev1.Secret, now time.Time) bool {
	issued, err := time.Parse(time.RFC3339, secret.Annotations[AnnotationIssued])
	if err != nil {
		return false
	}
	expires, err := time.Parse(time.RFC3339, secret.Annotations[AnnotationExpires])
	if err != nil {
		return false
	}
	return expires.Sub(now) <= expires.Sub(issued)/3
}

// renew the token that a cluster is reached with before it expires.
func (h *harbourmaster) renew(ctx context.Context, c *clusterv1alpha1.Cluster) error {
	m := h.members.get(c.Name)
	if m == nil || c.Spec.SecretRef == nil {
		return nil
	}
	secret := &corev1.Secret{}
	if err := h.secrets.Get(ctx, client.ObjectKey{Namespace: c.Spec.SecretRef.Namespace, Name: c.Spec.SecretRef.Name}, secret); err != nil {
		return err
	}
	account := secret.Annotations[AnnotationAccount]
	if account == "" || !due(secret, h.now()) {
		return nil
	}
	token, err := askForToken(ctx, m.config, account)
	if err != nil {
		return err
	}
	store(secret, account, token, h.now())
	if err := h.client.Update(ctx, secret, client.FieldOwner(FieldOwner)); err != nil {
		return fmt.Errorf("write Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("renewed the token of a cluster", "cluster", c.Name, "expires", token.ExpirationTimestamp.UTC())
	return nil
}
