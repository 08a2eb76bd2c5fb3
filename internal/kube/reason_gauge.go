package kube

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// ReasonGauge is a metric that is 1 for the reason that each object has at present, and has no other series of that object.
type ReasonGauge struct {
	gauge *prometheus.GaugeVec

	mu sync.Mutex
	// last has the labels of each object's series, by the labels without the reason.
	last map[string][]string
}

// NewReasonGauge makes a metric whose labels identify an object, with the label reason behind them.
func NewReasonGauge(name, help string, labels ...string) *ReasonGauge {
	return &ReasonGauge{
		gauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, append(labels, "reason")),
		last:  map[string][]string{},
	}
}

// Set records the reason of an object. An empty reason removes its series.
func (g *ReasonGauge) Set(reason string, object ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key, before := strings.Join(object, "/"), []string(nil)
	if before = g.last[key]; before != nil && before[len(before)-1] == reason {
		return
	}
	delete(g.last, key)
	if reason != "" {
		g.last[key] = append(append([]string(nil), object...), reason)
		// First: whoever scrapes in between must not find an object without a reason.
		g.gauge.WithLabelValues(g.last[key]...).Set(1)
	}
	if before != nil {
		g.gauge.DeleteLabelValues(before...)
	}
}

// Describe and Collect make it a prometheus.Collector.
func (g *ReasonGauge) Describe(out chan<- *prometheus.Desc) { g.gauge.Describe(out) }

// Collect sends the series of all objects.
func (g *ReasonGauge) Collect(out chan<- prometheus.Metric) { g.gauge.Collect(out) }
