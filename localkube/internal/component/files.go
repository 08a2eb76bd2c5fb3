package component

import (
	_ "embed"
	"strings"

	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodelease "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
)

//go:embed pod-stages.yaml
var podStages string

// PodPolicy is a ValidatingAdmissionPolicy, as YAML.
//
//go:embed pod-policy.yaml
var PodPolicy []byte

// Annotations of a pod that tell how it lives; pod-stages.yaml follows them, and pod-policy.yaml checks them.
const (
	ReadyAfter     = "localkube.fairlead.dev/ready-after"
	CrashAfter     = "localkube.fairlead.dev/crash-after"
	TerminateAfter = "localkube.fairlead.dev/terminate-after"
)

// StagesFile tells KWOK how nodes and pods live.
func StagesFile(dir clusterdir.Dir) string { return dir.Work("stages.yaml") }

// EgressFile tells the API server how to reach anything but etcd.
func EgressFile(dir clusterdir.Dir) string { return dir.Work("egress.yaml") }

// WriteFiles writes the configuration files that the components' arguments name.
func WriteFiles(dir clusterdir.Dir) error {
	stages := strings.Join([]string{nodefast.DefaultNodeInit, nodelease.DefaultNodeHeartbeatWithLease, podStages}, "\n---\n")
	if err := clusterdir.WriteFile(StagesFile(dir), []byte(stages)); err != nil {
		return err
	}
	return clusterdir.WriteFile(EgressFile(dir), []byte(egressConfiguration))
}

// egressConfiguration sends the API server's calls to Services and pods
// (`cluster`) and to webhooks registered by URL (`controlplane`) through the
// supervisor's proxy, which decides what is on this machine. Left to itself
// the API server would dial cluster IPs into the surrounding network.
const egressConfiguration = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  ` + egressConnection + `
- name: controlplane
  ` + egressConnection + `
`

const egressConnection = "connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: " + clusterdir.EgressSocket + "}}}"
