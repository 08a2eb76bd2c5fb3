// Package component says which components a cluster has and how each is
// started. The programs themselves are in package program, so that what only
// needs to know of them does not link all of Kubernetes.
package component

import "github.com/fairlead/fairlead/localkube/internal/clusterdir"

// Names of the components, as they appear in status and as log files.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
)

// Of returns the components of a profile, in the order they are started.
func Of(profile clusterdir.Profile) []string {
	if profile == clusterdir.Hub {
		return []string{Etcd, APIServer, ControllerManager}
	}
	return []string{Etcd, APIServer, ControllerManager, Scheduler, Kwok}
}
