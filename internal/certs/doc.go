// Package certs provides the serving certificate of Fairlead's webhooks, and the CA bundle for their callers.
//
// A Source loads a certificate from a Secret or a directory, again and again. The Secret may be managed by Fairlead, with a
// certificate authority of its own, by cert-manager, or by the user; all three have the keys tls.crt, tls.key and ca.crt.
//
// No caller ever meets a certificate that it does not trust yet. A certificate of a new authority is loaded, and its
// authority published beside the old one, while the old certificate is still served. It is served when its authority has
// been published for a while. The old authority stays published for longer, because another replica may still serve its
// certificate. All of that is decided from the published bundle, so that no state has to survive a restart.
package certs
