package pki

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
)

// WriteKubeconfigs writes one for the administrator, self-contained so that it
// can be copied anywhere, and one for each component.
func WriteKubeconfigs(dir clusterdir.Dir, apiPort int) error {
	for _, c := range []Client{Admin, ControllerManager, Scheduler, Kwok} {
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

// AdminConfig is the administrator's client configuration.
func AdminConfig(dir clusterdir.Dir) (*rest.Config, error) {
	return clientcmd.BuildConfigFromFlags("", dir.Kubeconfig())
}

func writeKubeconfig(dir clusterdir.Dir, c Client, apiPort int, path string) error {
	var read [3][]byte
	for i, file := range []string{CA + ".crt", c.Name + ".crt", c.Name + ".key"} {
		data, err := os.ReadFile(dir.PKI(file))
		if err != nil {
			return err
		}
		read[i] = data
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["localkube"] = &clientcmdapi.Cluster{
		Server:                   fmt.Sprintf("https://127.0.0.1:%d", apiPort),
		CertificateAuthorityData: read[0],
	}
	config.AuthInfos[c.User] = &clientcmdapi.AuthInfo{ClientCertificateData: read[1], ClientKeyData: read[2]}
	config.Contexts["localkube"] = &clientcmdapi.Context{Cluster: "localkube", AuthInfo: c.User}
	config.CurrentContext = "localkube"

	data, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return clusterdir.WriteFile(path, data)
}
