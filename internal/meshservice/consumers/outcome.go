package consumers

import (
	"fmt"
	"slices"
	"time"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// outcome is the result of a consumer in a started batch.
type outcome struct {
	done bool
	// failure and note are messages; an outcome with a failure is done.
	failure, note string
}

// updateOutcomes checks the consumers of started batches.
func (p *planner) updateOutcomes() {
	for i := range p.record.Consumers {
		c := &p.record.Consumers[i]
		end := kumav1alpha1.ConsumerSwitched
		switch c.State {
		case kumav1alpha1.ConsumerReverting:
			end = kumav1alpha1.ConsumerReverted
		case kumav1alpha1.ConsumerSwitching:
		default:
			continue
		}
		if !p.Serving || !p.Reported && p.Sent[c.Name] != c.Switched {
			p.unsent = p.unsent || p.Serving
			continue
		}
		v := p.consumerOutcome(c)
		switch {
		case v.failure != "":
			setState(c, kumav1alpha1.ConsumerFailed, p.now)
			c.Message = v.failure
		case v.done:
			setState(c, end, p.now)
			c.Message = v.note
		default:
			p.watchProxies(c)
		}
	}
}

// watchProxies watches the proxies of a consumer until its deadline.
func (p *planner) watchProxies(c *kumav1alpha1.MigratedConsumer) {
	for _, proxy := range p.consumers[c.Name] {
		p.watched[proxy.ID] = true
	}
	p.deadline = earlier(p.deadline, p.ackDeadline(c))
}

// ackDeadline is when the time of a consumer is up. It restarts with this process, and ignores times of another clock.
func (p *planner) ackDeadline(c *kumav1alpha1.MigratedConsumer) time.Time {
	from := c.Since.Time
	if from.Before(p.Started) || from.After(p.now) {
		from = p.Started
	}
	return from.Add(p.Timeout)
}

// consumerOutcome checks each proxy that was connected when the batch started, and those that replaced a deleted one.
func (p *planner) consumerOutcome(c *kumav1alpha1.MigratedConsumer) outcome {
	there := p.consumers[c.Name]
	var lost, silent, late []string
	replacements, acknowledged, listed := 0, 0, 0
	for _, proxy := range there {
		connection := p.connectionOf(proxy.ID, c.Switched)
		if connection.Connected && connection.NACK != "" {
			return outcome{failure: fmt.Sprintf("proxy %s rejected its configuration (NACK): %s; correct the cause, then %s",
				proxy.ID.Name, connection.NACK, p.remedy())}
		}
		_, known := slices.BinarySearch(c.Proxies, proxy.ID.Name)
		current := connection.Connected && connection.Current
		switch {
		case known && !connection.Connected:
			lost = append(lost, proxy.ID.Name)
		case known && !current:
			silent = append(silent, proxy.ID.Name)
		case !known && current:
			acknowledged++
		case !known:
			late = append(late, proxy.ID.Name)
		}
		if known {
			listed++
		} else {
			replacements++
		}
	}
	gone := len(c.Proxies) - listed
	missing := min(gone, replacements) - acknowledged
	over := !p.now.Before(p.ackDeadline(c))
	switch {
	case len(c.Proxies) == 0:
		return outcome{done: true, note: "no proxy was connected, so no acknowledgement was expected"}
	case len(there) == 0:
		return outcome{done: over, note: "all proxies of the consumer are deleted, so no acknowledgement is expected"}
	case len(lost)+len(silent) == 0 && missing <= 0:
		return outcome{done: true}
	case !over:
		return outcome{}
	case len(lost) > 0:
		return outcome{failure: fmt.Sprintf("%s was connected when the batch started and has disconnected: check its pod, then %s",
			proxiesText(lost), p.remedy())}
	case len(silent) > 0:
		return outcome{failure: fmt.Sprintf("%s did not acknowledge its configuration within %s: check its log, then %s",
			proxiesText(silent), p.Timeout, p.remedy())}
	}
	return outcome{failure: fmt.Sprintf("%s replaced a connected proxy and did not acknowledge its configuration within %s: "+
		"check its pod, then %s", proxiesText(late), p.Timeout, p.remedy())}
}

// connectionOf is the connection of a proxy as to the configuration of a consumer that is switched or not. What a reported
// connection says of the other configuration does not count.
func (p *planner) connectionOf(id model.ProxyID, switched bool) model.Connection {
	c := p.Connection(id)
	if p.Reported && c.Switched != switched {
		c.Current, c.NACK = false, ""
	}
	return c
}

func (p *planner) remedy() string {
	retry := fmt.Sprintf("`fairlead retry mesh %s`", p.Mesh.Name)
	if p.record.Revert {
		return retry
	}
	return fmt.Sprintf("%s, or revert with `fairlead migrate mesh %s --revert`", retry, p.Mesh.Name)
}

func proxiesText(names []string) string { return "proxy " + firstAndCount(names) }

// firstAndCount names the first, and counts the others.
func firstAndCount(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return fmt.Sprintf("%s and %d more", names[0], len(names)-1)
}
