package component

import (
	"fmt"
	"strings"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
	"github.com/fairlead/fairlead/localkube/internal/pki"
)

// What a hub runs of the controller manager, and the admission plugins that
// would wait there for controllers it lacks.
var (
	hubControllers = []string{
		"garbage-collector-controller", "namespace-controller",
		"serviceaccount-controller", "serviceaccount-token-controller",
	}
	hubDisabledAdmission = []string{"StorageObjectInUseProtection", "ResourceQuota", "ServiceAccount"}
)

// Arguments a component is started with.
func Arguments(name string, dir clusterdir.Dir, s clusterdir.Settings) []string {
	switch name {
	case Etcd:
		return etcdArguments(dir, s.Ports)
	case APIServer:
		return apiServerArguments(dir, s)
	case ControllerManager:
		return controllerManagerArguments(dir, s.Profile)
	case Scheduler:
		return loopArguments(dir, pki.Scheduler)
	case Kwok:
		return []string{
			"--kubeconfig=" + pki.KubeconfigOf(dir, pki.Kwok),
			"--config=" + StagesFile(dir),
			"--manage-all-nodes=true",
			"--node-lease-duration-seconds=40",
		}
	}
	panic("no arguments for component " + name)
}

// loopArguments: nobody else leads, nobody scrapes, and the client's default
// of 20 requests a second would be the slowest thing on the machine.
func loopArguments(dir clusterdir.Dir, client pki.Client) []string {
	kubeconfig := pki.KubeconfigOf(dir, client)
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--leader-elect=false", "--secure-port=0",
		"--kube-api-qps=1000", "--kube-api-burst=2000",
		"--profiling=false",
	}
}

func etcdArguments(dir clusterdir.Dir, ports clusterdir.Ports) []string {
	client := fmt.Sprintf("https://127.0.0.1:%d", ports.EtcdClient)
	peer := fmt.Sprintf("https://127.0.0.1:%d", ports.EtcdPeer)
	cert, key, ca := dir.PKI(pki.EtcdServer+".crt"), dir.PKI(pki.EtcdServer+".key"), dir.PKI(pki.EtcdCA+".crt")
	return []string{
		"--name=localkube",
		"--data-dir=" + dir.EtcdData(),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=localkube=" + peer,
		"--cert-file=" + cert, "--key-file=" + key, "--trusted-ca-file=" + ca, "--client-cert-auth",
		"--peer-cert-file=" + cert, "--peer-key-file=" + key, "--peer-trusted-ca-file=" + ca, "--peer-client-cert-auth",
		// A killed process loses nothing that it wrote; only a power cut could.
		"--unsafe-no-fsync",
		"--auto-compaction-mode=periodic", "--auto-compaction-retention=1h",
		"--log-level=warn",
	}
}

func apiServerArguments(dir clusterdir.Dir, s clusterdir.Settings) []string {
	args := []string{
		fmt.Sprintf("--etcd-servers=https://127.0.0.1:%d", s.Ports.EtcdClient),
		"--etcd-cafile=" + dir.PKI(pki.EtcdCA+".crt"),
		"--etcd-certfile=" + dir.PKI(pki.APIServerEtcd+".crt"),
		"--etcd-keyfile=" + dir.PKI(pki.APIServerEtcd+".key"),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", s.Ports.API),
		// A loopback address may not be an endpoint of the kubernetes Service.
		"--endpoint-reconciler-type=none",
		"--tls-cert-file=" + dir.PKI(pki.APIServer+".crt"),
		"--tls-private-key-file=" + dir.PKI(pki.APIServer+".key"),
		"--client-ca-file=" + dir.PKI(pki.CA+".crt"),
		"--service-cluster-ip-range=10.96.0.0/12",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + dir.PKI(pki.ServiceTokens+".key"),
		"--service-account-signing-key-file=" + dir.PKI(pki.ServiceTokens+".key"),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--requestheader-client-ca-file=" + dir.PKI(pki.FrontProxyCA+".crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + dir.PKI(pki.FrontProxy+".crt"),
		"--proxy-client-key-file=" + dir.PKI(pki.FrontProxy+".key"),
		"--egress-selector-config-file=" + EgressFile(dir),
		"--profiling=false",
	}
	if s.Profile == clusterdir.Hub {
		args = append(args, "--disable-admission-plugins="+strings.Join(hubDisabledAdmission, ","))
	}
	return args
}

func controllerManagerArguments(dir clusterdir.Dir, profile clusterdir.Profile) []string {
	args := append(loopArguments(dir, pki.ControllerManager),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+dir.PKI(pki.ServiceTokens+".key"),
		"--root-ca-file="+dir.PKI(pki.CA+".crt"),
		"--cluster-signing-cert-file="+dir.PKI(pki.CA+".crt"),
		"--cluster-signing-key-file="+dir.PKI(pki.CA+".key"),
	)
	// A machine that stalls would have the nodes lost, and their pods never become ready again.
	args = append(args, "--node-monitor-grace-period=1h")
	if profile == clusterdir.Hub {
		args = append(args, "--controllers="+strings.Join(hubControllers, ","))
	}
	return args
}
