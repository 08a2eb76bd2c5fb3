package pki

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
)

func TestCertificatesVerify(t *testing.T) {
	dir := ensured(t)
	serving, authenticating := x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth
	tests := []struct {
		name, ca string
		usage    x509.ExtKeyUsage
		host     string
		user     string
		groups   []string
	}{
		{name: APIServer, ca: CA, usage: serving, host: "127.0.0.1"},
		{name: APIServer, ca: CA, usage: serving, host: "kubernetes.default.svc"},
		{name: EtcdServer, ca: EtcdCA, usage: serving, host: "127.0.0.1"},
		{name: EtcdServer, ca: EtcdCA, usage: authenticating},
		{name: APIServerEtcd, ca: EtcdCA, usage: authenticating},
		{name: FrontProxy, ca: FrontProxyCA, usage: authenticating, user: "front-proxy-client"},
		{name: Admin.Name, ca: CA, usage: authenticating, user: "localkube-admin", groups: []string{"system:masters"}},
		{name: ControllerManager.Name, ca: CA, usage: authenticating, user: "system:kube-controller-manager"},
		{name: Scheduler.Name, ca: CA, usage: authenticating, user: "system:kube-scheduler"},
		{name: Kwok.Name, ca: CA, usage: authenticating, user: "localkube-kwok", groups: []string{"system:masters"}},
	}
	for _, test := range tests {
		t.Run(test.name+" "+test.host, func(t *testing.T) {
			cert := certificate(t, dir, test.name)
			if err := verify(cert, certificate(t, dir, test.ca), test.usage, test.host); err != nil {
				t.Error(err)
			}
			if test.user != "" && cert.Subject.CommonName != test.user {
				t.Errorf("user is %s, want %s", cert.Subject.CommonName, test.user)
			}
			if got, want := strings.Join(cert.Subject.Organization, ","), strings.Join(test.groups, ","); got != want {
				t.Errorf("groups are %q, want %q", got, want)
			}
			for _, other := range []string{CA, EtcdCA, FrontProxyCA} {
				if other != test.ca && verify(cert, certificate(t, dir, other), test.usage, test.host) == nil {
					t.Errorf("verifies against %s too, want %s alone", other, test.ca)
				}
			}
		})
	}
	if verify(certificate(t, dir, APIServer), certificate(t, dir, CA), authenticating, "") == nil {
		t.Error("the API server's serving certificate authenticates a client")
	}
	if verify(certificate(t, dir, APIServer), certificate(t, dir, CA), serving, "192.0.2.1") == nil {
		t.Error("the API server's certificate is good for another address")
	}
}

func TestClustersDoNotTrustEachOther(t *testing.T) {
	blue, green := ensured(t), ensured(t)
	if verify(certificate(t, blue, Admin.Name), certificate(t, green, CA), x509.ExtKeyUsageClientAuth, "") == nil {
		t.Error("one cluster's administrator is one in another")
	}
}

func TestEverythingIsKeptAndPrivate(t *testing.T) {
	dir := ensured(t)
	before := contents(t, dir)
	if err := Ensure(dir); err != nil {
		t.Fatal(err)
	}
	after := contents(t, dir)
	if len(before) == 0 || len(before) != len(after) {
		t.Fatalf("%d files, then %d", len(before), len(after))
	}
	for path, data := range before {
		if !bytes.Equal(data, after[path]) {
			t.Errorf("%s was made anew", path)
		}
	}
}

func TestOnlyWhatIsMissingIsMade(t *testing.T) {
	dir := ensured(t)
	before := contents(t, dir)
	lost := dir.PKI(Scheduler.Name + ".crt")
	if err := os.Remove(lost); err != nil {
		t.Fatal(err)
	}
	if err := Ensure(dir); err != nil {
		t.Fatal(err)
	}
	for path, data := range contents(t, dir) {
		if (path == lost) == bytes.Equal(data, before[path]) {
			t.Errorf("%s: made anew or kept, and should be the other", path)
		}
	}
	if err := verify(certificate(t, dir, Scheduler.Name), certificate(t, dir, CA), x509.ExtKeyUsageClientAuth, ""); err != nil {
		t.Error(err)
	}
}

func TestDamageIsNamed(t *testing.T) {
	for _, file := range []string{CA + ".crt", CA + ".key", Admin.Name + ".crt", ServiceTokens + ".key"} {
		t.Run(file, func(t *testing.T) {
			dir := ensured(t)
			if err := os.WriteFile(dir.PKI(file), []byte("nonsense"), 0o600); err != nil {
				t.Fatal(err)
			}
			err := Ensure(dir)
			if err == nil || !strings.Contains(err.Error(), dir.PKI(file)) || !strings.Contains(err.Error(), "localkube down --dir "+string(dir)+" --delete") {
				t.Errorf("error is %v, want one that names the file and what to do", err)
			}
		})
	}
}

func TestKubeconfigs(t *testing.T) {
	dir := ensured(t)
	if err := WriteKubeconfigs(dir, 20001); err != nil {
		t.Fatal(err)
	}
	for _, client := range []Client{Admin, ControllerManager, Scheduler, Kwok} {
		t.Run(client.Name, func(t *testing.T) {
			path := KubeconfigOf(dir, client)
			private(t, path)
			config, err := clientcmd.BuildConfigFromFlags("", path)
			if err != nil {
				t.Fatal(err)
			}
			if config.Host != "https://127.0.0.1:20001" || config.Insecure {
				t.Errorf("server is %s, insecure is %t", config.Host, config.Insecure)
			}
			if config.CAFile+config.CertFile+config.KeyFile != "" {
				t.Error("refers to files, so that a copy elsewhere would not work")
			}
			ca, err := os.ReadFile(dir.PKI(CA + ".crt"))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(config.CAData, ca) {
				t.Error("does not carry the cluster's CA")
			}
			if user := parse(t, config.CertData).Subject.CommonName; user != client.User {
				t.Errorf("user is %s, want %s", user, client.User)
			}
		})
	}
}

func ensured(t *testing.T) clusterdir.Dir {
	t.Helper()
	dir := clusterdir.Dir(t.TempDir())
	if err := dir.Prepare(); err != nil {
		t.Fatal(err)
	}
	if err := Ensure(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func verify(cert, ca *x509.Certificate, usage x509.ExtKeyUsage, host string) error {
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	_, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}, DNSName: host})
	return err
}

func certificate(t *testing.T, dir clusterdir.Dir, name string) *x509.Certificate {
	t.Helper()
	data, err := os.ReadFile(dir.PKI(name + ".crt"))
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, data)
}

func parse(t *testing.T, data []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(data)
	if block == nil {
		t.Fatal("no certificate")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func contents(t *testing.T, dir clusterdir.Dir) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := filepath.WalkDir(dir.PKI(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		private(t, path)
		all[path], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func private(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode of %s is %o, want 600", path, info.Mode().Perm())
	}
}
