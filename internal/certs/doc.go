// Package certs keeps the serving certificate of Fairlead's webhooks, and tells whom their callers are to trust.
//
// A Source loads a certificate from a Secret or a directory, again and again. The Secret may be one that Fairlead itself
// keeps, with a certificate authority of its own, or one that cert-manager or the user keeps; all three look alike, with
// the keys tls.crt, tls.key and ca.crt.
//
// No caller ever meets a certificate that it does not trust yet. A certificate whose authority is new is loaded, and its
// authority is published beside the old one, while the old certificate is still served; it is served itself when its
// authority has been seen to be trusted for a while. The old authority is trusted for a while longer, because another
// replica may not have changed over yet. All of that is decided from what is published, so nothing needs to be
// remembered across a restart.
package certs
