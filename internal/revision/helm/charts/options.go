package charts

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	ociref "oras.land/oras-go/v2/registry"
)

// DefaultRepository has the charts of Istio's own releases.
const DefaultRepository = "oci://gcr.io/istio-release/charts"

// Options say where Istio's charts come from; nothing set means DefaultRepository.
type Options struct {
	// Dir holds charts as DIR/VERSION/CHART.
	Dir string
	// Repository is the URL of a Helm repository (https://...) or of an OCI registry (oci://...).
	Repository string
	// CacheDir keeps what was downloaded; empty means a directory of Fairlead's in the user's cache.
	CacheDir string
	// CAFile has certificates to trust besides the system's.
	CAFile string
	// Keyring has the public keys, one of which must have signed the provenance file of each download.
	Keyring string
	// CosignKey is the public key that each chart in an OCI registry must be signed with.
	CosignKey string
	// RegistryConfig has the credentials for an OCI registry; empty means Helm's, then Docker's.
	RegistryConfig string
}

// AddFlags registers a flag for every option; what the options hold already is the default.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Dir, "chart-dir", o.Dir,
		"directory of Istio's charts as DIR/VERSION/CHART, such as DIR/v1.24.0/istiod, instead of a repository")
	flags.StringVar(&o.Repository, "chart-repository", o.Repository,
		"Helm repository (https://...) or OCI registry (oci://...) of Istio's charts\n(default "+DefaultRepository+")")
	flags.StringVar(&o.CacheDir, "chart-cache-dir", o.CacheDir,
		"directory that keeps downloaded charts (default fairlead/charts in the user's cache directory)")
	flags.StringVar(&o.CAFile, "chart-ca-file", o.CAFile,
		"PEM file of CAs to trust besides the system's when downloading charts;\n"+
			"without it, an OCI registry on this machine is spoken to in plain http")
	flags.StringVar(&o.Keyring, "chart-keyring", o.Keyring,
		"keyring of OpenPGP public keys: charts are only used with a provenance file (.prov) that one of the keys signed")
	flags.StringVar(&o.CosignKey, "chart-cosign-key", o.CosignKey,
		"PEM file with a public key of cosign (ECDSA P-256): charts of an OCI registry are only used if they are signed with it")
	flags.StringVar(&o.RegistryConfig, "chart-registry-config", o.RegistryConfig,
		"file with the credentials for an OCI registry, as helm registry login writes it\n(default Helm's own, then Docker's)")
}

// Validate rejects invalid options. It reads files, and makes no request.
func (o Options) Validate() error {
	_, err := New(o)
	return err
}

func (o Options) directory() (Source, error) {
	if o.Repository != "" {
		return nil, fmt.Errorf("charts come from --chart-dir %s or from --chart-repository %s: leave one of the two out",
			o.Dir, o.Repository)
	}
	if o.Keyring != "" || o.CosignKey != "" {
		return nil, fmt.Errorf("--chart-keyring and --chart-cosign-key are for downloads: leave them out with --chart-dir %s, "+
			"and verify the charts before you put them there", o.Dir)
	}
	info, err := os.Stat(o.Dir)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--chart-dir: %w; name a directory that holds charts as VERSION/CHART, such as v1.24.0/istiod", err)
	case !info.IsDir():
		return nil, fmt.Errorf("--chart-dir: %s is not a directory; name one that holds charts as VERSION/CHART, such as v1.24.0/istiod",
			o.Dir)
	}
	path, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("--chart-dir %s: %w", o.Dir, err)
	}
	return directory{path}, nil
}

// verification reads the keys. The location is nil if it is invalid.
func (o Options) verification(location *url.URL) (verification, error) {
	keys, badKeyring := readKeyring(o.Keyring)
	cosign, badKey := readCosignKey(o.CosignKey)
	var noRegistry error
	if cosign != nil && location != nil && location.Scheme != "oci" {
		noRegistry = fmt.Errorf("--chart-cosign-key is for an OCI registry, and %s is a Helm repository: use --chart-keyring", location)
	}
	return verification{keys, cosign}, errors.Join(badKeyring, badKey, noRegistry)
}

func validateRegistryConfig(file string) error {
	if file == "" {
		return nil
	}
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return fmt.Errorf("--chart-registry-config: %w; write it with helm registry login --registry-config, or leave the flag out", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("--chart-registry-config: %s is not a file", file)
	}
	return nil
}

func (o Options) cacheDir() (string, error) {
	if o.CacheDir != "" {
		return filepath.Abs(o.CacheDir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("nowhere to keep charts: %w; set --chart-cache-dir", err)
	}
	return filepath.Join(dir, "fairlead", "charts"), nil
}

// repository is the URL of --chart-repository.
func (o Options) repository() (*url.URL, error) {
	text := cmp.Or(o.Repository, DefaultRepository)
	refuse := func(format string, args ...any) (*url.URL, error) {
		return nil, fmt.Errorf("--chart-repository "+format, args...)
	}
	u, err := url.Parse(strings.TrimRight(text, "/"))
	switch {
	case err != nil:
		return refuse("%q is not a URL such as %s", text, DefaultRepository)
	case u.User != nil:
		return refuse("of %s has credentials in it, for all to see: leave them out, and use --chart-registry-config with an OCI registry",
			u.Host)
	case u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return refuse("%q is not a URL such as %s", text, DefaultRepository)
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return refuse("%s would be asked in plain http, which is for this machine only: use https://%s", text, u.Host+u.Path)
	}
	switch u.Scheme {
	case "https", "http":
	case "oci":
		if _, err := ociref.ParseReference(u.Host + u.Path + "/" + istiod); err != nil {
			return refuse("%s is not the path of charts in a registry, such as %s: %v", text, DefaultRepository, err)
		}
	default:
		return refuse("%q must start with https:// for a Helm repository or oci:// for an OCI registry", text)
	}
	return u, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
