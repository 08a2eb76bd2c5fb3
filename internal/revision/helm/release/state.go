package release

import (
	"strconv"
	"sync"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// State is the recorded state of a release.
type State struct {
	Name, Namespace string
	Exists          bool
	// Version counts the attempts to install or upgrade the release.
	Version int
	// Status is Helm's: deployed, failed, pending-upgrade, uninstalling and so on.
	Status       string
	Fingerprint  string
	ChartVersion string
}

func (s State) key() types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
}

// Deployed tells whether the latest attempt succeeded.
func (s State) Deployed() bool { return s.Exists && s.Status == string(common.StatusDeployed) }

// StateOf is the state in the latest of the Secrets that record one release.
func StateOf(secrets []metav1.PartialObjectMetadata) State {
	var latest State
	for i := range secrets {
		labels := secrets[i].Labels
		version, err := strconv.Atoi(labels["version"])
		if err != nil || version <= latest.Version {
			continue
		}
		latest = State{
			Name: labels["name"], Namespace: secrets[i].Namespace, Exists: true,
			Version: version, Status: labels["status"],
			Fingerprint: labels[v1.LabelFingerprint], ChartVersion: labels[v1.LabelChartVersion],
		}
	}
	return latest
}

// recentWriteTTL is how long a cache may lag behind our own writes.
const recentWriteTTL = 10 * time.Second

// recentWrites has the last state that this process wrote of each release, until a cache shows it.
type recentWrites struct{ last sync.Map }

type recentWrite struct {
	State
	at time.Time
}

func (m *recentWrites) add(state State, now time.Time) {
	m.last.Store(state.key(), recentWrite{state, now})
}

func (m *recentWrites) remove(key types.NamespacedName) { m.last.Delete(key) }

func (m *recentWrites) latest(cached State, now time.Time) State {
	known, _ := m.last.Load(cached.key())
	own, ok := known.(recentWrite)
	if !ok {
		return cached
	}
	if own.State == cached || !own.Exists && !cached.Exists || now.Sub(own.at) > recentWriteTTL {
		m.last.CompareAndDelete(cached.key(), own)
		return cached
	}
	return own.State
}

// Latest is the cached state, or what this process has written since.
func (m *Manager) Latest(cached State) State { return m.recent.latest(cached, time.Now()) }
