package scale_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/kubernetes"
)

// sample is one line of a page of metrics.
type sample struct {
	name   string
	labels map[string]string
	value  float64
}

// page is what a process says of itself.
type page []sample

var (
	line  = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$`)
	label = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"`)
)

func parsePage(text string) (page, error) {
	var all page
	for text := range strings.Lines(text) {
		text = strings.TrimSuffix(text, "\n")
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		parts := line.FindStringSubmatch(text)
		if parts == nil {
			return nil, fmt.Errorf("not a line of metrics: %s", text)
		}
		value, err := strconv.ParseFloat(parts[3], 64)
		if err != nil {
			return nil, fmt.Errorf("the metric %s: %w", text, err)
		}
		labels := map[string]string{}
		for _, pair := range label.FindAllStringSubmatch(parts[2], -1) {
			labels[pair[1]] = pair[2]
		}
		all = append(all, sample{parts[1], labels, value})
	}
	return all, nil
}

// sum of the samples of a metric that have all of the given labels.
func (p page) sum(name string, labels map[string]string) float64 {
	var sum float64
samples:
	for _, s := range p {
		if s.name != name {
			continue
		}
		for key, value := range labels {
			if s.labels[key] != value {
				continue samples
			}
		}
		sum += s.value
	}
	return sum
}

// serverPage is what the API server says.
func serverPage(ctx context.Context, kube kubernetes.Interface) (page, error) {
	text, err := kube.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the metrics of the API server: %w", err)
	}
	return parsePage(string(text))
}

// operatorPage is what an operator says.
func operatorPage(ctx context.Context, address string) (page, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read the metrics of the operator: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read the metrics of the operator: %w", err)
	}
	return parsePage(string(text))
}

// requests are how often the API server was asked for what.
type requests map[asked]float64

type asked struct{ verb, resource string }

// requestsOf leaves out what is not about resources, such as these metrics, and the housekeeping of the control plane:
// its leases and the events of all.
func requestsOf(p page) requests {
	all := requests{}
	for _, s := range p {
		if s.name != "apiserver_request_total" {
			continue
		}
		switch resource := s.labels["resource"]; resource {
		case "", "leases", "events":
		default:
			if sub := s.labels["subresource"]; sub != "" {
				resource += "/" + sub
			}
			all[asked{s.labels["verb"], resource}] += s.value
		}
	}
	return all
}

// since are those that came after earlier ones.
func (r requests) since(earlier requests) requests {
	more := requests{}
	for what, count := range r {
		if n := count - earlier[what]; n > 0 {
			more[what] = n
		}
	}
	return more
}

// writes are those that can change what is stored.
func (r requests) writes() requests {
	writes := requests{}
	for what, count := range r {
		switch what.verb {
		case "GET", "LIST", "WATCH", "WATCHLIST", "CONNECT":
		default:
			writes[what] = count
		}
	}
	return writes
}

func (r requests) total() float64 {
	var total float64
	for _, count := range r {
		total += count
	}
	return total
}

// per object, those that many of them needed.
func (r requests) per(objects float64) string {
	const least = 0.1
	var each []string
	for what, count := range r {
		if count >= least*objects {
			each = append(each, fmt.Sprintf("%s %s %.2f", what.verb, what.resource, count/objects))
		}
	}
	slices.Sort(each)
	return strings.Join(each, ", ")
}

// String counts them by verb.
func (r requests) String() string {
	verbs := map[string]float64{}
	for what, count := range r {
		verbs[what.verb] += count
	}
	var counts []string
	for _, verb := range slices.Sorted(maps.Keys(verbs)) {
		counts = append(counts, fmt.Sprintf("%.0f %s", verbs[verb], verb))
	}
	if len(counts) == 0 {
		return "none"
	}
	return strings.Join(counts, ", ")
}
