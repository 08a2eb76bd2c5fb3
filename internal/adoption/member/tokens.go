package member

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/fairlead/fairlead/api/cluster/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// The keys of the Secret that a cluster is reached with.
const (
	secretToken     = "token"
	secretAuthority = "caBundle"
)

// TokenLifetime is how long the token of a cluster is asked for. The cluster may grant less.
const TokenLifetime = 30 * 24 * time.Hour

// requestToken gets a new token for an account of the hub in a cluster.
func requestToken(ctx context.Context, member client.Client, account string) (authenticationv1.TokenRequestStatus, error) {
	serviceAccount := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: model.MemberNamespace, Name: account}}
	token := &authenticationv1.TokenRequest{}
	token.Spec.ExpirationSeconds = ptr.To(int64(TokenLifetime / time.Second))
	if err := member.SubResource("token").Create(ctx, serviceAccount, token); err != nil {
		return authenticationv1.TokenRequestStatus{}, fmt.Errorf("request a token from the cluster: %w", err)
	}
	return token.Status, nil
}

// storeToken writes a token into a Secret.
func storeToken(secret *corev1.Secret, account string, token authenticationv1.TokenRequestStatus, now time.Time) {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[secretToken] = []byte(token.Token)
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, model.AnnotationAccount, account)
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, model.AnnotationIssued, now.UTC().Format(time.RFC3339))
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, model.AnnotationExpires, token.ExpirationTimestamp.UTC().Format(time.RFC3339))
}

// isRenewalDue tells whether the token in a Secret should be renewed: a third of its lifetime is left, or less. The lifetime of a
// token that Fairlead did not request is unknown.
func isRenewalDue(secret *corev1.Secret, now time.Time) bool {
	issued, err := time.Parse(time.RFC3339, secret.Annotations[model.AnnotationIssued])
	if err != nil {
		return false
	}
	expires, err := time.Parse(time.RFC3339, secret.Annotations[model.AnnotationExpires])
	if err != nil {
		return false
	}
	return expires.Sub(now) <= expires.Sub(issued)/3
}

// renewToken renews the token of a cluster before it expires.
func (h *reconciler) renewToken(ctx context.Context, c *clusterv1alpha1.Cluster) error {
	m := h.members.Get(c.Name)
	if m == nil || c.Spec.SecretRef == nil {
		return nil
	}
	secret := &corev1.Secret{}
	if err := h.secrets.Get(ctx, client.ObjectKey{Namespace: c.Spec.SecretRef.Namespace, Name: c.Spec.SecretRef.Name}, secret); err != nil {
		return err
	}
	account := secret.Annotations[model.AnnotationAccount]
	if account == "" || !isRenewalDue(secret, h.now()) {
		return nil
	}
	token, err := requestToken(ctx, m.API, account)
	if err != nil {
		return err
	}
	storeToken(secret, account, token, h.now())
	if err := h.client.Update(ctx, secret, client.FieldOwner(model.FieldOwner)); err != nil {
		return fmt.Errorf("write Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("renewed the token of a cluster", "cluster", c.Name, "expires", token.ExpirationTimestamp.UTC())
	return nil
}
