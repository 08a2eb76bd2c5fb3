package operator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead/fairlead/internal/operator/lease"
)

// recordHolders records who holds the leases, and logs every other operator that keeps this one from acting.
func (p *leaseMonitor) recordHolders(holders []lease.Holder) {
	p.mu.Lock()
	before, identity := p.holders, p.identity
	p.holders = holders
	p.mu.Unlock()
	for _, h := range holders {
		switch {
		case h.Identity == "" || h.Identity == identity || slices.Contains(before, h):
		case h.Passage == "":
			p.log.Info("standing by: an operator of an older version leads", "lease", h.Lease, "holder", h.Identity,
				"action", "upgrade the operator that holds the lease, or stop it")
		default:
			p.log.Info("standing by: another operator leads the passage", "passage", h.Passage, "lease", h.Lease, "holder", h.Identity,
				"action", "none if the holder is a replica of this operator; otherwise stop one of the two, or give each of them other --passages")
		}
	}
}

func (p *leaseMonitor) currentHolders() (holders []lease.Holder, identity string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.holders, p.identity
}

// describeHolders has a line for each passage, empty without leader election.
func (p *leaseMonitor) describeHolders() string {
	var text strings.Builder
	holders, identity := p.currentHolders()
	for _, h := range holders {
		who := h.Identity
		switch h.Identity {
		case "":
			who = "nobody"
		case identity:
			who = "this operator"
		}
		if h.Passage == "" {
			fmt.Fprintf(&text, "all passages: held by %s, an older version (lease %s)\n", who, h.Lease)
			continue
		}
		fmt.Fprintf(&text, "passage %s: held by %s (lease %s)\n", h.Passage, who, h.Lease)
	}
	return text.String()
}

// leaseCollector is a metric of who leads which passage. A passage that does not hold has one from the start, so that nobody takes an
// operator that never takes part in leader election for one that has nothing to lead.
type leaseCollector struct {
	monitor *leaseMonitor
	// expected are the passages that are to be led.
	expected func() []string
}

var passageLease = prometheus.NewDesc("fairlead_passage_lease",
	"1 if this operator holds the lease of a passage, 0 if another one does or nobody; holder is the identity in the lease", []string{"passage", "holder"}, nil)

func (leaseCollector) Describe(out chan<- *prometheus.Desc) { out <- passageLease }

func (c leaseCollector) Collect(out chan<- prometheus.Metric) {
	holders, identity := c.monitor.currentHolders()
	expected := c.expected()
	for _, h := range holders {
		if h.Passage == "" {
			continue
		}
		expected = slices.DeleteFunc(expected, func(passage string) bool { return passage == h.Passage })
		value := 0.0
		if h.Identity == identity {
			value = 1
		}
		out <- prometheus.MustNewConstMetric(passageLease, prometheus.GaugeValue, value, h.Passage, h.Identity)
	}
	for _, passage := range expected {
		out <- prometheus.MustNewConstMetric(passageLease, prometheus.GaugeValue, 0, passage, "")
	}
}
