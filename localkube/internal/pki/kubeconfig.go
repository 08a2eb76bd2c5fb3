package pki

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
)

// WriteKubeconfigs writes one for the administrator, self-contained so that it
// can be copied anywhere, and one for each component.
func WriteKubeconfigs(dir clusterdir.Dir, apiPort int) error {
	for _, c := range clients {
		path := KubeconfigOf(dir, c)
		if err := writeKubeconfig(dir, c, apiPort, path); err != nil {
			return fmt.Errorf("write kubeconfig %s: %w", path, err)
		}
	}
	return nil
}

// KubeconfigOf tells where a client's kubeconfig lies.
func KubeconfigOf(dir clusterdir.Dir, c Client) string {
	if c.Name == Admin.Name {
		return dir.Kubeconfig()
	}
	return dir.PKI(c.Name + ".kubeconfig")
}

func writeKubeconfig(dir clusterdir.Dir, c Client, apiPort int, path string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["localkube"] = &clientcmdapi.Cluster{
		Server:               fmt.Sprintf("https://127.0.0.1:%d", apiPort),
		CertificateAuthority: dir.PKI(CA + ".crt"),
	}
	config.AuthInfos[c.User] = &clientcmdapi.AuthInfo{
		ClientCertificate: dir.PKI(c.Name + ".crt"), ClientKey: dir.PKI(c.Name + ".key"),
	}
	config.Contexts["localkube"] = &clientcmdapi.Context{Cluster: "localkube", AuthInfo: c.User}
	config.CurrentContext = "localkube"

	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return err
	}
	data, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return clusterdir.WriteFile(path, data)
}
