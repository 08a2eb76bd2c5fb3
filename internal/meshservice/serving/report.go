// Package serving carries what proxies have acknowledged from the processes that serve them to the operator that switches
// consumers: a Reporter writes MeshServingReports, and Reports reads those of all processes.
package serving

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	fairleadv1alpha1 "github.com/fairlead/fairlead/api/fairlead/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

const (
	// shardCount is the most reports of a process: one with 10,000 proxies lists some 600 in each, in about 60 KB.
	shardCount = 16
	// maxMessages is how many rejections of a report are explained, and maxMessage how long an explanation is: proxies choose
	// the text.
	maxMessages, maxMessage = 100, 500
	// renewInterval is how often a process says that it runs, and expiry how long it may be silent.
	renewInterval, expiry = 5 * time.Second, 15 * time.Second
)

// state is what a proxy has acknowledged on a process.
type state struct {
	// acknowledged is what the last acknowledged configuration leads to, and rejected that of a rejected one, with the reason.
	acknowledged, rejected fairleadv1alpha1.Destinations
	message                string
}

// next is the state after a proxy was seen in a connection, with a configuration that leads to of. What it has acknowledged
// stays until it acknowledges another one, so that a change of the mesh is no change of the state.
func (s state) next(connection model.Connection, of fairleadv1alpha1.Destinations) state {
	switch {
	case of == "":
		return s
	case connection.NACK != "":
		s.rejected, s.message = of, connection.NACK
	case connection.Current:
		return state{acknowledged: of}
	default:
		s.rejected, s.message = "", ""
	}
	return s
}

// connection is the state as seen from a consumer that is switched or not.
func (s state) connection() model.Connection {
	c := model.Connection{Connected: true, Current: s.acknowledged != "", Switched: s.acknowledged == fairleadv1alpha1.DestinationMeshServices}
	if s.rejected != "" {
		c.Current, c.NACK, c.Switched = false, s.message, s.rejected == fairleadv1alpha1.DestinationMeshServices
	}
	return c
}

// merge is the state of a proxy that is connected to two processes, one of which may have ended: both have to be current.
func merge(a, b model.Connection) model.Connection {
	switch {
	case !a.Connected:
		return b
	case !b.Connected:
		return a
	case a.NACK != "":
		return a
	case b.NACK != "":
		return b
	case !a.Current:
		return a
	case !b.Current:
		return b
	case a.Switched != b.Switched:
		a.Current = false
	}
	return a
}

// destinationsOf is what a configuration leads to.
func destinationsOf(switched bool) fairleadv1alpha1.Destinations {
	if switched {
		return fairleadv1alpha1.DestinationMeshServices
	}
	return fairleadv1alpha1.DestinationTags
}

// shardOf is the report that lists a proxy.
func shardOf(id model.ProxyID) int {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(id.String())) // cannot fail
	return int(hash.Sum32() % shardCount)
}

func shardName(replica string, shard int) string { return fmt.Sprintf("%s-%d", replica, shard) }

// listProxies lists the proxies of a report, sorted. A message that is left out is named by what it is about alone.
func listProxies(states map[model.ProxyID]state) []fairleadv1alpha1.ReportedProxy {
	ids := slices.SortedFunc(maps.Keys(states), func(a, b model.ProxyID) int { return cmp.Compare(a.String(), b.String()) })
	messages := 0
	all := make([]fairleadv1alpha1.ReportedProxy, 0, len(ids))
	for _, id := range ids {
		s := states[id]
		if s.message != "" {
			if messages++; messages > maxMessages {
				s.message = "too many rejections to report each: see the log of the proxy"
			}
			if len(s.message) > maxMessage {
				s.message = strings.ToValidUTF8(s.message[:maxMessage], "")
			}
		}
		all = append(all, fairleadv1alpha1.ReportedProxy{ID: id.String(), Acknowledged: s.acknowledged, Rejected: s.rejected, Message: s.message})
	}
	return all
}

// statesOf reads the proxies of a report. A node id that cannot be read is that of no Dataplane.
func statesOf(report *fairleadv1alpha1.MeshServingReport, namespaced bool) map[model.ProxyID]state {
	states := make(map[model.ProxyID]state, len(report.Proxies))
	for _, p := range report.Proxies {
		if id, err := model.ParseProxyID(p.ID, namespaced); err == nil {
			states[id] = state{acknowledged: p.Acknowledged, rejected: p.Rejected, message: cmp.Or(p.Message, string(p.Rejected))}
		}
	}
	return states
}

// changedIDs are the proxies whose state differs.
func changedIDs(before, after map[model.ProxyID]state) []model.ProxyID {
	var changed []model.ProxyID
	for id, s := range after {
		if was, known := before[id]; !known || was != s {
			changed = append(changed, id)
		}
	}
	for id := range before {
		if _, stays := after[id]; !stays {
			changed = append(changed, id)
		}
	}
	return changed
}

// digest is that of a set of consumers; empty for none.
func digest(consumers map[string]bool) string {
	hash, any := fnv.New128a(), false
	for _, name := range slices.Sorted(maps.Keys(consumers)) {
		if consumers[name] {
			any = true
			_, _ = hash.Write([]byte(name + "\x00")) // cannot fail
		}
	}
	if !any {
		return ""
	}
	return hex.EncodeToString(hash.Sum(nil))
}
