package build

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"

	kumav1alpha1 "github.com/fairlead/fairlead/api/kuma/v1alpha1"
	"github.com/fairlead/fairlead/internal/meshservice/model"
)

func raw(text string) apiextensionsv1.JSON { return apiextensionsv1.JSON{Raw: []byte(text)} }

func seconds(n float64) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n * float64(time.Second))}
}

// Settings that policies may lead to, the odd ones among them.
func settings() map[string]Settings {
	balanced := func(b kumav1alpha1.LoadBalancer) Settings {
		return Settings{LoadBalancing: &kumav1alpha1.MeshLoadBalancingStrategyConf{LoadBalancer: &b, HashPolicies: []apiextensionsv1.JSON{
			raw(`{"type":"Header","header":{"name":"x-user"}}`), raw(`{"type":"Cookie","cookie":{"name":"c","ttl":"5s"},"terminal":true}`),
			raw(`{"type":"Connection","connection":{"sourceIP":true}}`), raw(`{"type":"QueryParameter","queryParameter":{"name":"q"}}`),
			raw(`{"type":"FilterState","filterState":{"key":"io.grpc.channel_id"}}`), raw(`{"type":"Header","header":{"name":""}}`), raw(`7`),
		}}}
	}
	return map[string]Settings{
		"nothing":  {},
		"empty":    {Timeout: &kumav1alpha1.MeshTimeoutConf{}, Retry: &kumav1alpha1.MeshRetryConf{}, CircuitBreaker: &kumav1alpha1.MeshCircuitBreakerConf{}, LoadBalancing: &kumav1alpha1.MeshLoadBalancingStrategyConf{}},
		"for ever": {Timeout: &kumav1alpha1.MeshTimeoutConf{ConnectionTimeout: seconds(0), IdleTimeout: seconds(0), HTTP: &kumav1alpha1.HTTPTimeouts{RequestTimeout: seconds(0), StreamIdleTimeout: seconds(0), MaxStreamDuration: seconds(0), MaxConnectionDuration: seconds(0), RequestHeadersTimeout: seconds(0)}}},
		"retries": {Retry: &kumav1alpha1.MeshRetryConf{
			TCP: &kumav1alpha1.TCPRetry{MaxConnectAttempt: ptr.To[int32](3)}, GRPC: &kumav1alpha1.GRPCRetry{NumRetries: ptr.To[int32](2), RetryOn: []string{"Canceled", "Unavailable"}},
			HTTP: &kumav1alpha1.HTTPRetry{BackOff: &kumav1alpha1.BackOff{BaseInterval: seconds(2), MaxInterval: seconds(1)}, RetryOn: []string{"5xx", "HttpMethodPost", "503"}},
		}},
		"no retries": {Retry: &kumav1alpha1.MeshRetryConf{TCP: &kumav1alpha1.TCPRetry{MaxConnectAttempt: ptr.To[int32](0)}, HTTP: &kumav1alpha1.HTTPRetry{NumRetries: ptr.To[int32](0)}, GRPC: &kumav1alpha1.GRPCRetry{NumRetries: ptr.To[int32](0), BackOff: &kumav1alpha1.BackOff{BaseInterval: seconds(0)}}}},
		"detectors": {CircuitBreaker: &kumav1alpha1.MeshCircuitBreakerConf{OutlierDetection: &kumav1alpha1.OutlierDetection{Interval: seconds(0), Detectors: &kumav1alpha1.Detectors{
			TotalFailures: &kumav1alpha1.ConsecutiveFailures{}, GatewayFailures: &kumav1alpha1.ConsecutiveFailures{}, LocalOriginFailures: &kumav1alpha1.ConsecutiveFailures{},
			SuccessRate: &kumav1alpha1.SuccessRate{StandardDeviationFactor: ptr.To(raw(`1.9`))}, FailurePercentage: &kumav1alpha1.FailurePercentage{},
		}}}},
		"switched off": {CircuitBreaker: &kumav1alpha1.MeshCircuitBreakerConf{OutlierDetection: &kumav1alpha1.OutlierDetection{Disabled: ptr.To(true)}}},
		"RoundRobin":   balanced(kumav1alpha1.LoadBalancer{Type: "RoundRobin"}),
		"LeastRequest": balanced(kumav1alpha1.LoadBalancer{Type: "LeastRequest", LeastRequest: &kumav1alpha1.LeastRequest{ChoiceCount: ptr.To[int32](4)}}),
		"RingHash":     balanced(kumav1alpha1.LoadBalancer{Type: "RingHash", RingHash: &kumav1alpha1.RingHash{HashFunction: "MurmurHash2", MaxRingSize: ptr.To[int32](1024)}}),
		"Random":       balanced(kumav1alpha1.LoadBalancer{Type: "Random"}),
		"one choice":   balanced(kumav1alpha1.LoadBalancer{Type: "LeastRequest", LeastRequest: &kumav1alpha1.LeastRequest{ChoiceCount: ptr.To[int32](1)}}),
		"a huge ring":  balanced(kumav1alpha1.LoadBalancer{Type: "RingHash", RingHash: &kumav1alpha1.RingHash{MinRingSize: ptr.To[int32](1 << 30), MaxRingSize: ptr.To[int32](7)}}),
		"no prime":     balanced(kumav1alpha1.LoadBalancer{Type: "Maglev", Maglev: &kumav1alpha1.Maglev{TableSize: ptr.To[int32](100)}}),
		"Maglev":       balanced(kumav1alpha1.LoadBalancer{Type: "Maglev", Maglev: &kumav1alpha1.Maglev{TableSize: ptr.To[int32](65537)}}),
	}
}

// Whatever policies say, proxies take what is built, and it is built of the same bytes every time.
func TestAllIsValid(t *testing.T) {
	for name, s := range settings() {
		for _, protocol := range []model.Protocol{model.TCP, model.HTTP, model.HTTP2, model.GRPC} {
			t.Run(name+" "+string(protocol), func(t *testing.T) {
				build := func() []string {
					var versions []string
					seal := func(m Message, err error) {
						r, err := Marshal("backend", m, err)
						if err != nil {
							t.Fatal(err)
						}
						versions = append(versions, r.Version)
					}
					seal(Cluster("backend", protocol, s))
					seal(Routes("backend", protocol, nil, []WeightedCluster{{"backend", 1}}, s))
					shares := []WeightedCluster{{"backend", 1}, {"other", 0}, {"third", 3}}
					seal(Listener(HostAddress("backend.mesh", 80), protocol, "backend", shares, s))
					seal(Listener(IPAddress("10.0.0.1", 80), protocol, "backend", shares, s))
					bound := IPAddress("fd00::1", 80)
					bound.Bind = true
					seal(Listener(bound, model.TCP, "backend", shares, s))
					seal(Endpoints("backend", []Locality{{Zone: "east", Endpoints: []model.Endpoint{{Address: "10.0.0.1", Port: 1}}}}, 140), nil)
					return versions
				}
				if first, again := build(), build(); !slices.Equal(first, again) {
					t.Errorf("they are %v and then %v", first, again)
				}
			})
		}
	}
}

func TestSealRefuses(t *testing.T) {
	for name, build := range map[string]func() (Message, error){
		"a cluster without a name": func() (Message, error) { return Cluster("", model.TCP, Settings{}) },
		"a listener for port 70000": func() (Message, error) {
			return Listener(IPAddress("10.0.0.1", 70000), model.HTTP, "backend", nil, Settings{})
		},
		"endpoints without a cluster": func() (Message, error) { return Endpoints("", nil, 0), nil },
	} {
		t.Run(name, func(t *testing.T) {
			message, err := build()
			if _, err := Marshal("it", message, err); err == nil || !strings.HasPrefix(err.Error(), "it is not valid: ") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Connections that lead to nobody are refused, by a listener that a proxy accepts.
func TestNowhere(t *testing.T) {
	for name, shares := range map[string][]WeightedCluster{"no shares": nil, "what gets nothing": {{"backend", 0}}} {
		t.Run(name, func(t *testing.T) {
			listener, err := Listener(IPAddress("10.0.0.1", 80), model.TCP, "backend", shares, Settings{})
			if _, err := Marshal("it", listener, err); err != nil {
				t.Fatal(err)
			}
			var filter tcpv3.TcpProxy
			if err := listener.GetFilterChains()[0].GetFilters()[0].GetTypedConfig().UnmarshalTo(&filter); err != nil || filter.GetCluster() != NoCluster {
				t.Errorf("they go to %q: %v", filter.GetCluster(), err)
			}
		})
	}
}

// What becomes of a rule.
func TestRoutes(t *testing.T) {
	prefix := func(value string) kumav1alpha1.HTTPMatch {
		return kumav1alpha1.HTTPMatch{Path: &kumav1alpha1.PathMatch{Type: "PathPrefix", Value: value}}
	}
	rewrite := `{"type":"URLRewrite","urlRewrite":{"hostname":"h","path":{"type":"ReplacePrefixMatch","replacePrefixMatch":"/w"}}}`
	for name, c := range map[string]struct {
		rule    Rule
		filters []string
		want    string
	}{
		"a prefix": {Rule{Match: prefix("/v2/")}, nil,
			`{"match":{"path":"/v2"},"route":{"cluster":"own"}} {"match":{"prefix":"/v2/"},"route":{"cluster":"own"}}`},
		"every path": {Rule{Match: prefix("/")}, nil, `{"match":{"prefix":"/"},"route":{"cluster":"own"}}`},
		"a prefix that is rewritten": {Rule{Match: prefix("/v2")}, []string{rewrite},
			`{"match":{"path":"/v2"},"route":{"cluster":"own","prefixRewrite":"/w","hostRewriteLiteral":"h"}} {"match":{"prefix":"/v2/"},"route":{"cluster":"own","prefixRewrite":"/w/","hostRewriteLiteral":"h"}}`},
		"a redirect": {Rule{}, []string{`{"type":"RequestRedirect","requestRedirect":{"scheme":"https","port":8443,"statusCode":307,"path":{"type":"ReplaceFullPath","replaceFullPath":"/moved"}}}`},
			`{"match":{"prefix":"/"},"redirect":{"schemeRedirect":"https","portRedirect":8443,"pathRedirect":"/moved","responseCode":"TEMPORARY_REDIRECT"}}`},
		"headers of a response": {Rule{}, []string{`{"type":"ResponseHeaderModifier","responseHeaderModifier":{"remove":["server"]}}`},
			`{"match":{"prefix":"/"},"route":{"cluster":"own"},"responseHeadersToRemove":["server"]}`},
		"a full path": {Rule{}, []string{`{"type":"URLRewrite","urlRewrite":{"path":{"type":"ReplaceFullPath","replaceFullPath":"/all"}}}`},
			`{"match":{"prefix":"/"},"route":{"cluster":"own","regexRewrite":{"pattern":{"regex":".*"},"substitution":"/all"}}}`},
		"nowhere to go": {Rule{Clusters: []WeightedCluster{{"other", 0}}}, nil, `{"match":{"prefix":"/"},"directResponse":{"status":500}}`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, written := range c.filters {
				filter, err := ReadFilter(raw(written))
				if err != nil {
					t.Fatal(err)
				}
				c.rule.Filters = append(c.rule.Filters, filter)
			}
			if c.rule.Clusters == nil {
				c.rule.Clusters = []WeightedCluster{{"own", 1}}
			}
			config, err := Routes("own", model.HTTP, []Rule{c.rule}, []WeightedCluster{{"own", 1}}, Settings{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Marshal("own", config, nil); err != nil {
				t.Fatal(err)
			}
			routes := config.VirtualHosts[0].Routes
			for i, text := range strings.Split(c.want, "} {") {
				// Splitting takes the braces between two away.
				if i > 0 {
					text = "{" + text
				}
				if i < strings.Count(c.want, "} {") {
					text += "}"
				}
				var want routev3.Route
				if err := protojson.Unmarshal([]byte(text), &want); err != nil {
					t.Fatal(err)
				}
				if !proto.Equal(&want, routes[i]) {
					t.Errorf("route %d is %v, want %v", i, routes[i], &want)
				}
			}
			if len(routes) != strings.Count(c.want, "} {")+2 {
				t.Errorf("there are %d routes", len(routes))
			}
		})
	}
}

func TestHostnames(t *testing.T) {
	config, err := Routes("own", model.HTTP, []Rule{{Hostnames: []string{"a.example.com"}, Clusters: []WeightedCluster{{"a", 1}}}, {Clusters: []WeightedCluster{{"all", 1}}}}, []WeightedCluster{{"own", 1}}, Settings{})
	if err != nil || len(config.VirtualHosts) != 2 {
		t.Fatalf("%v %v", config, err)
	}
	for i, want := range []string{"a all own", "all own"} {
		var got []string
		for _, r := range config.VirtualHosts[i].Routes {
			got = append(got, r.GetRoute().GetCluster())
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("host %v goes to %s, want %s", config.VirtualHosts[i].Domains, text, want)
		}
	}
}

// A client without a proxy knows how long a request may take by how long its stream may.
func TestLongest(t *testing.T) {
	for name, c := range map[string]struct {
		request, stream *metav1.Duration
		want            time.Duration
	}{
		"nothing": {nil, nil, 0}, "for ever": {seconds(0), seconds(0), 0}, "a request": {seconds(3), nil, 3 * time.Second},
		"a stream": {seconds(0), seconds(9), 9 * time.Second}, "the shorter": {seconds(3), seconds(2), 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := maxStreamDuration(c.request, c.stream).GetMaxStreamDuration().AsDuration(); got != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
		})
	}
}

// A regular expression that is long, or becomes large, is refused: a proxy would reject all routes of the destination.
func TestLargeRegularExpressions(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"usual":         {`/api/v[0-9]+/(cart|till)/\p{L}{1,64}`, ""},
		"invalid":       {"(", "is not a valid regular expression"},
		"long":          {strings.Repeat("a", maxRegexText+1), "has 1025 bytes, more than 1024"},
		"the longest":   {strings.Repeat("a", maxRegexText), ""},
		"large":         {`(\pL{100}){10}`, "repeats too much"},
		"large classes": {strings.Repeat(`\pL`, 300), "repeats too much"},
	} {
		t.Run(name, func(t *testing.T) {
			rule := Rule{Match: kumav1alpha1.HTTPMatch{Path: &kumav1alpha1.PathMatch{Type: "RegularExpression", Value: c.text}}}
			err := rule.Check()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
			if err != nil && len(err.Error()) > 200 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

// Hostnames of other rules cost a rule nothing.
func TestRoutesPerHostname(t *testing.T) {
	allocations := func(count int) float64 {
		var rules []Rule
		for i := range count {
			rules = append(rules, Rule{
				Hostnames: []string{fmt.Sprintf("%d.example.org", i)},
				Match:     kumav1alpha1.HTTPMatch{Path: &kumav1alpha1.PathMatch{Type: "RegularExpression", Value: "/a{1,9}"}},
			})
		}
		rules = append(rules, Rule{Match: kumav1alpha1.HTTPMatch{Path: &kumav1alpha1.PathMatch{Type: "RegularExpression", Value: "/b(c|d){1,9}"}}})
		return testing.AllocsPerRun(3, func() {
			if _, err := Routes("backend", model.HTTP, rules, []WeightedCluster{{"backend", 1}}, Settings{}); err != nil {
				t.Fatal(err)
			}
		})
	}
	few, many := allocations(10), allocations(100)
	if each := (many - few) / 90; each > 50 {
		t.Errorf("each hostname costs %.0f allocations", each)
	}
}

func FuzzFilter(f *testing.F) {
	for _, seed := range []string{
		`{"type":"RequestMirror","requestMirror":{"percentage":"12.5","backendRef":{"kind":"MeshService","name":"a"}}}`,
		`{"type":"RequestRedirect","requestRedirect":{}}`, `{"type":"URLRewrite"}`, `[]`, `{`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, written string) {
		filter, err := ReadFilter(raw(written))
		if err != nil {
			return
		}
		if filter.RequestMirror != nil {
			filter.RequestMirror.Cluster = "mirror"
		}
		if _, err := Routes("own", model.HTTP, []Rule{{Filters: []Filter{filter}, Clusters: []WeightedCluster{{"own", 1}}}}, nil, Settings{}); err != nil {
			t.Fatal(err)
		}
	})
}
