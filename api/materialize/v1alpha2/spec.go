package v1alpha2

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// SharedSpec is what every version of the API has.
type SharedSpec struct {
	// Image of environmentd. The images of balancerd and the console are those of the same version.
	// +kubebuilder:validation:MinLength=1
	// +required
	EnvironmentdImageRef string `json:"environmentdImageRef"`

	// Secret, in the same namespace, with metadata_backend_url and persist_backend_url.
	// +kubebuilder:validation:MinLength=1
	// +required
	BackendSecretName string `json:"backendSecretName"`

	// Arguments of environmentd, after those that Fairlead gives it.
	// +listType=atomic
	// +optional
	EnvironmentdExtraArgs []string `json:"environmentdExtraArgs,omitempty"`

	// Environment variables of environmentd, besides those that Fairlead sets.
	// +listType=atomic
	// +optional
	EnvironmentdExtraEnv []corev1.EnvVar `json:"environmentdExtraEnv,omitempty"`

	// ARN of the role with which environmentd connects to AWS on behalf of users.
	// +optional
	EnvironmentdConnectionRoleArn string `json:"environmentdConnectionRoleArn,omitempty"`

	// Resources of environmentd.
	// +optional
	EnvironmentdResourceRequirements *corev1.ResourceRequirements `json:"environmentdResourceRequirements,omitempty"`

	// Size of environmentd's scratch volume. Left out: it has none.
	// +optional
	EnvironmentdScratchVolumeStorageRequirement *resource.Quantity `json:"environmentdScratchVolumeStorageRequirement,omitempty"`

	// Resources of balancerd. A change rolls nothing out.
	// +optional
	BalancerdResourceRequirements *corev1.ResourceRequirements `json:"balancerdResourceRequirements,omitempty"`

	// Resources of the console. A change rolls nothing out.
	// +optional
	ConsoleResourceRequirements *corev1.ResourceRequirements `json:"consoleResourceRequirements,omitempty"`

	// How many balancerd pods there are. A change rolls nothing out.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +optional
	BalancerdReplicas *int32 `json:"balancerdReplicas,omitempty"`

	// How many console pods there are. A change rolls nothing out.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +optional
	ConsoleReplicas *int32 `json:"consoleReplicas,omitempty"`

	// ServiceAccount of environmentd. Left out: one that Fairlead makes.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// Annotations of the ServiceAccount that Fairlead makes.
	// +optional
	ServiceAccountAnnotations map[string]string `json:"serviceAccountAnnotations,omitempty"`

	// Labels of the ServiceAccount that Fairlead makes.
	// +optional
	ServiceAccountLabels map[string]string `json:"serviceAccountLabels,omitempty"`

	// Annotations of all pods.
	// +optional
	PodAnnotations map[string]string `json:"podAnnotations,omitempty"`

	// Labels of all pods.
	// +optional
	PodLabels map[string]string `json:"podLabels,omitempty"`

	// Any new UUID rolls out what is there already.
	// +optional
	ForceRollout UUID `json:"forceRollout,omitempty"`

	// How a new generation takes over.
	// WaitUntilReady promotes it when it has caught up. ManuallyPromote then waits for forcePromote.
	// ImmediatelyPromoteCausingDowntime removes the old generation before the new one starts.
	// +kubebuilder:default=WaitUntilReady
	// +optional
	RolloutStrategy RolloutStrategy `json:"rolloutStrategy,omitempty"`

	// How long a rollout may take until it is promoting, counted from when it was asked for. After that it is cancelled.
	// +kubebuilder:default="24h"
	// +optional
	RolloutRequestTimeout Duration `json:"rolloutRequestTimeout,omitempty"`

	// How users prove who they are.
	// +kubebuilder:default=None
	// +optional
	AuthenticatorKind AuthenticatorKind `json:"authenticatorKind,omitempty"`

	// Whether permissions are checked.
	// +optional
	EnableRbac bool `json:"enableRbac,omitempty"`

	// Identity of the environment. Left out: one that is derived from the UID of the resource. It cannot change after the first
	// rollout.
	// +optional
	EnvironmentID UUID `json:"environmentId,omitempty"`

	// ConfigMap, in the same namespace, with system parameters.
	// +optional
	SystemParameterConfigmapName string `json:"systemParameterConfigmapName,omitempty"`

	// Certificate of balancerd. A change rolls nothing out.
	// +optional
	BalancerdExternalCertificateSpec *CertificateSpec `json:"balancerdExternalCertificateSpec,omitempty"`

	// Certificate of the console. A change rolls nothing out.
	// +optional
	ConsoleExternalCertificateSpec *CertificateSpec `json:"consoleExternalCertificateSpec,omitempty"`

	// Certificate with which the parts talk to each other.
	// +optional
	InternalCertificateSpec *CertificateSpec `json:"internalCertificateSpec,omitempty"`
}

// RolloutStrategy is how a new generation takes over from the old one.
//
// +kubebuilder:validation:Enum=WaitUntilReady;ManuallyPromote;ImmediatelyPromoteCausingDowntime
type RolloutStrategy string

// The rollout strategies.
const (
	RolloutWaitUntilReady                    RolloutStrategy = "WaitUntilReady"
	RolloutManuallyPromote                   RolloutStrategy = "ManuallyPromote"
	RolloutImmediatelyPromoteCausingDowntime RolloutStrategy = "ImmediatelyPromoteCausingDowntime"
)

// AuthenticatorKind is how users prove who they are.
//
// +kubebuilder:validation:Enum=None;Frontegg;Password;Sasl;Oidc
type AuthenticatorKind string

// The kinds of authenticators.
const (
	AuthenticatorNone     AuthenticatorKind = "None"
	AuthenticatorFrontegg AuthenticatorKind = "Frontegg"
	AuthenticatorPassword AuthenticatorKind = "Password"
	AuthenticatorSasl     AuthenticatorKind = "Sasl"
	AuthenticatorOidc     AuthenticatorKind = "Oidc"
)

// UUID is one as text.
//
// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`
// +kubebuilder:validation:MaxLength=36
type UUID string

// NilUUID stands for none at all.
const NilUUID UUID = "00000000-0000-0000-0000-000000000000"

// CertificateSpec asks cert-manager for a certificate.
type CertificateSpec struct {
	// Names that the certificate is for, besides those of the Services.
	// +listType=atomic
	// +optional
	DNSNames []string `json:"dnsNames,omitempty"`

	// How long the certificate is valid.
	// +optional
	Duration Duration `json:"duration,omitempty"`

	// How long before its end it is renewed.
	// +optional
	RenewBefore Duration `json:"renewBefore,omitempty"`

	// Who signs it.
	// +optional
	IssuerRef *CertificateIssuerRef `json:"issuerRef,omitempty"`

	// Metadata of the Secret that it is kept in.
	// +optional
	SecretTemplate *CertificateSecretTemplate `json:"secretTemplate,omitempty"`
}

// CertificateIssuerRef names an issuer of cert-manager.
type CertificateIssuerRef struct {
	// Name of the issuer.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`

	// Issuer or ClusterIssuer.
	// +optional
	Kind string `json:"kind,omitempty"`

	// API group of the issuer.
	// +optional
	Group string `json:"group,omitempty"`
}

// CertificateSecretTemplate is the metadata of the Secret of a certificate.
type CertificateSecretTemplate struct {
	// Annotations of the Secret.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// Labels of the Secret.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
}
