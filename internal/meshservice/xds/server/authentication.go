package server

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// Identifier authenticates a stream as that of a proxy. An error has the code Unauthenticated or PermissionDenied if the
// claim is wrong, and another one if it could not be checked.
type Identifier func(ctx context.Context, claimed model.ProxyID) error

// Insecure accepts every claim, for tests on one machine.
func Insecure(context.Context, model.ProxyID) error { return nil }

// ByCertificate checks that the client certificate is valid and has the URI of the proxy. Tokens, if not nil, authenticates
// proxies without a certificate.
func ByCertificate(tokens Identifier) Identifier {
	return func(ctx context.Context, claimed model.ProxyID) error {
		certificate := certificateOf(ctx)
		if certificate == nil && tokens != nil {
			return tokens(ctx, claimed)
		}
		return checkCertificate(certificate, claimed, time.Now())
	}
}

// certificateOf returns the verified client certificate of the connection, or nil.
func certificateOf(ctx context.Context) *x509.Certificate {
	from, known := peer.FromContext(ctx)
	if !known {
		return nil
	}
	info, secure := from.AuthInfo.(credentials.TLSInfo)
	if !secure || len(info.State.VerifiedChains) == 0 {
		return nil
	}
	return info.State.VerifiedChains[0][0]
}

// URI is the SPIFFE ID of a proxy in its certificate.
func URI(id model.ProxyID) string {
	if id.Namespace == "" {
		return fmt.Sprintf("spiffe://%s/proxy/%s", id.Mesh, id.Name)
	}
	return fmt.Sprintf("spiffe://%s/ns/%s/proxy/%s", id.Mesh, id.Namespace, id.Name)
}

// checkCertificate returns why a certificate is not that of a proxy.
func checkCertificate(certificate *x509.Certificate, claimed model.ProxyID, now time.Time) error {
	need := URI(claimed)
	if certificate == nil {
		return status.Errorf(codes.Unauthenticated, "proxy %s presented no client certificate: a certificate for %s is required", claimed, need)
	}
	if now.After(certificate.NotAfter) {
		return status.Errorf(codes.Unauthenticated, "the certificate of proxy %s expired at %s: issue a new one for %s, and reconnect",
			claimed, certificate.NotAfter.UTC().Format(time.RFC3339), need)
	}
	var has []string
	for _, uri := range certificate.URIs {
		has = append(has, uri.String())
	}
	if slices.Contains(has, need) {
		return nil
	}
	return status.Errorf(codes.PermissionDenied, "the certificate is for %s: proxy %s needs one for %s",
		cmp.Or(strings.Join(has, ", "), "no URI at all"), claimed, need)
}
