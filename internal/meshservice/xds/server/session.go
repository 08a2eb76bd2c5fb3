package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// maxNACKMessage bounds the message of a NACK.
const maxNACKMessage = 500

// session is one stream, as go-control-plane's cache and callbacks.
type session struct {
	store *Store
	// identify authenticates the node of the first request.
	identify func(ctx context.Context, node string) (model.ProxyID, error)
	ctx      context.Context
	end      context.CancelCauseFunc
	since    time.Time
	// reject records why the node was rejected.
	reject func(node string, err error)
	// identified receives the proxy of the stream.
	identified chan model.ProxyID
	node       string
	connection *connection

	// sending are the resources of the response that is about to be sent, and sendTimer ends a stream that does not send it
	// within sendTimeout.
	sending     list
	sendTimer   *time.Timer
	sendTimeout time.Duration

	// otherTypes are those asked for that are not served.
	otherTypes map[string]bool

	// proxy is nil until the stream is authenticated. Its lock guards the fields below.
	proxy   *proxy
	state   streamState
	watches [4]watch
	timer   *time.Timer
	// costs are what the names of each type take, by subscriptionCost.
	costs [4]int
}

// authenticate authenticates the node of the first request, and checks that later requests have the same.
func (s *session) authenticate(node string) error {
	if s.proxy != nil {
		if node != "" && node != s.node {
			return status.Errorf(codes.InvalidArgument, "the node id changed from %q to %q: open a new stream for another node", s.node, node)
		}
		return nil
	}
	id, err := s.identify(s.ctx, node)
	if err == nil {
		s.node = node
		err = s.store.addSession(id, s)
	}
	if err != nil {
		if s.ctx.Err() == nil {
			s.reject(node, err)
		}
		return err
	}
	s.identified <- id
	s.store.notify(id)
	return nil
}

// CreateWatch handles a state-of-the-world request.
func (s *session) CreateWatch(request *discovery.DiscoveryRequest, sub cache.Subscription, to chan cache.Response) (func(), error) {
	return s.watch(request.GetTypeUrl(), subscriptionCost(sub.SubscribedResources()), func(t resource.Type, p *typeState) watch {
		if t == resource.Listener && !p.subscribed {
			s.state.hadListeners = hasResources(request.GetVersionInfo())
		}
		first := !p.subscribed
		p.dropUnsent()
		s.acknowledge(t, request.GetResponseNonce(), nackMessage(t, request.GetErrorDetail() != nil, request.GetErrorDetail().GetMessage()))
		p.subscribe(sub.IsWildcard(), sub.SubscribedResources())
		if first {
			s.resume(t, request.GetVersionInfo())
		}
		return &sotwWatch{to}
	})
}

// CreateDeltaWatch handles an incremental request.
func (s *session) CreateDeltaWatch(request *discovery.DeltaDiscoveryRequest, sub cache.Subscription, to chan cache.DeltaResponse) (func(), error) {
	cost := subscriptionCost(sub.SubscribedResources()) + subscriptionCost(request.GetInitialResourceVersions())
	return s.watch(request.GetTypeUrl(), cost, func(t resource.Type, p *typeState) watch {
		first := !p.subscribed
		if first {
			p.known = listOfVersions(request.GetInitialResourceVersions())
			p.acked = p.known
			s.state.delta = true
			if len(p.known) > 0 && s.state.resumedAt.IsZero() {
				s.state.resumedAt = time.Now()
			}
			if t == resource.Listener {
				s.state.hadListeners = len(p.known) > 0
			}
		}
		s.acknowledge(t, request.GetResponseNonce(), nackMessage(t, request.GetErrorDetail() != nil, request.GetErrorDetail().GetMessage()))
		p.subscribe(sub.IsWildcard(), sub.SubscribedResources())
		named := slices.Concat(request.GetResourceNamesSubscribe(), request.GetResourceNamesUnsubscribe())
		if !first {
			// A repeated subscription asks for the resource again.
			again := sets.New(named...)
			p.known = p.known.filter(func(name string) bool { return !again.Has(name) })
		}
		return &deltaWatch{named, to}
	})
}

// acknowledge records an ACK or NACK, and counts NACKs.
func (s *session) acknowledge(t resource.Type, nonce, against string) {
	if s.state.acknowledge(t, nonce, against, s.proxy.config.Version(t), time.Now()) && against != "" && !s.proxy.gone {
		nacks.WithLabelValues(s.proxy.id.Mesh).Inc()
	}
}

// watch handles a request and opens its watch.
func (s *session) watch(url string, cost int, take func(resource.Type, *typeState) watch) (func(), error) {
	t, served := resource.TypeOf(url)
	if !served {
		return nil, nil // a type that is not served
	}
	p := s.proxy
	p.mu.Lock()
	if err := s.charge(t, cost); err != nil {
		p.mu.Unlock()
		s.end(err)
		return nil, err
	}
	before := p.connection()
	s.watches[t] = take(t, &s.state.types[t])
	mine := s.watches[t]
	s.sendUpdates()
	after := p.connection()
	p.mu.Unlock()
	if before != after {
		s.store.notify(p.id)
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if s.watches[t] == mine {
			s.watches[t] = nil
		}
	}, nil
}

// subscriptionCost is what names of resources take as long as they are subscribed to.
func subscriptionCost[V any](names map[string]V) int {
	cost := len(names) * nameCost
	for name := range names {
		cost += len(name)
	}
	return cost
}

// charge has the names of a type counted for the proxy, whose streams together may not subscribe to more than there is room for.
func (s *session) charge(t resource.Type, cost int) error {
	p := s.proxy
	if s.store != nil && p.subscriptions-s.costs[t]+cost > s.store.maxSubscriptions {
		return rejectf(causeRequestSize, codes.ResourceExhausted, "the streams of proxy %s subscribe to too many names: subscribe to fewer, or raise --mesh-max-request-bytes", s.node)
	}
	p.subscriptions += cost - s.costs[t]
	s.costs[t] = cost
	return nil
}

// discharge ends what charge counted.
func (s *session) discharge() {
	for _, cost := range s.costs {
		s.proxy.subscriptions -= cost
	}
	s.costs = [4]int{}
}

// isServed says whether resources of a type are served. A proxy may ask for some that are not.
func (s *session) isServed(url string) (bool, error) {
	if _, served := resource.TypeOf(url); served {
		return true, nil
	}
	if s.otherTypes == nil {
		s.otherTypes = map[string]bool{}
	}
	s.otherTypes[url] = true
	if len(s.otherTypes) > maxOtherTypes {
		err := rejectf(causeRequest, codes.InvalidArgument, "proxy %s asks for more than %d types that are not served", s.node, maxOtherTypes)
		s.end(err)
		return false, err
	}
	return false, nil
}

// sendUpdates sends the changes that may be sent now, and sets a timer for delayed ones.
func (s *session) sendUpdates() {
	s.stopTimer()
	now, config := time.Now(), s.proxy.config
	if resuming, end := s.isResuming(now); resuming {
		s.timer = time.AfterFunc(end.Sub(now), s.onTimer)
		return
	}
	prewarm := s.state.planPrewarm(config, now)
	again := prewarm.requeueAt
	for _, t := range resource.Types() {
		if s.watches[t] == nil {
			continue
		}
		p := &s.state.types[t]
		next, later := s.state.nextResources(t, config, prewarm, now)
		again = earliest(again, later)
		if t == resource.Listener && s.state.keepsListeners(config, now) {
			continue
		}
		wire := wireVersion(t, config, next)
		send, sent := s.watches[t].respond(t, p, next, wire)
		if send == nil {
			p.known = next
			s.state.updateCurrentVersion(t, config)
			continue
		}
		s.state.recordResponse(t, next, sent, config.Version(t), wire)
		s.watches[t] = nil
		if !send() {
			s.end(status.Errorf(codes.Internal, "no room for a response of type %s: reconnect", t.URL()))
			return
		}
	}
	if s.state.convergedAt.IsZero() && s.state.isCurrent(config) {
		s.state.convergedAt = now
		again = earliest(again, now.Add(s.store.timing.RemovalDelay))
	}
	if !again.IsZero() {
		s.timer = time.AfterFunc(again.Sub(now), s.onTimer)
	}
}

// wireVersion is the version of what a proxy has with a response. It differs from that of the configuration as long as the
// proxy keeps old resources, so that a control plane which knows nothing of the proxy can tell.
func wireVersion(t resource.Type, config *resource.Config, next list) string {
	if next.sharesMemory(config.Of(t)) {
		return config.Version(t)
	}
	return resource.Digest(next)
}

func (s *session) onTimer() {
	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()
	if s.ctx.Err() == nil {
		s.sendUpdates()
	}
}

func (s *session) stopTimer() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

// nackMessage returns the error of a NACK, empty for an ACK.
func nackMessage(t resource.Type, refused bool, message string) string {
	if !refused {
		return ""
	}
	url := t.URL()
	return fmt.Sprintf("%s: %.*s", url[strings.LastIndexByte(url, '.')+1:], maxNACKMessage, message)
}

// The callbacks of go-control-plane. The node comes with the first request.

func (s *session) OnStreamOpen(context.Context, int64, string) error { return nil }

func (s *session) OnDeltaStreamOpen(context.Context, int64, string) error { return nil }

func (s *session) OnStreamRequest(_ int64, request *discovery.DiscoveryRequest) error {
	if err := s.authenticate(request.GetNode().GetId()); err != nil {
		return err
	}
	served, err := s.isServed(request.GetTypeUrl())
	if !served {
		request.ResourceNames = nil
	}
	s.shareNames(request.GetTypeUrl(), request.GetResourceNames())
	return err
}

func (s *session) OnStreamDeltaRequest(_ int64, request *discovery.DeltaDiscoveryRequest) error {
	if err := s.authenticate(request.GetNode().GetId()); err != nil {
		return err
	}
	served, err := s.isServed(request.GetTypeUrl())
	if !served {
		request.ResourceNamesSubscribe, request.ResourceNamesUnsubscribe, request.InitialResourceVersions = nil, nil, nil
	}
	s.shareNames(request.GetTypeUrl(), request.GetResourceNamesSubscribe())
	return err
}

// shareNames replaces the names in a request by those of the resources, which all proxies share: go-control-plane keeps the names
// of a subscription as long as the stream.
func (s *session) shareNames(url string, names []string) {
	t, served := resource.TypeOf(url)
	if !served || len(names) == 0 {
		return
	}
	s.proxy.mu.Lock()
	config := s.proxy.config
	s.proxy.mu.Unlock()
	for i, name := range names {
		if r := config.Find(t, name); r != nil {
			names[i] = r.Name
		}
	}
}

func (s *session) OnStreamResponse(_ context.Context, _ int64, _ *discovery.DiscoveryRequest, answer *discovery.DiscoveryResponse) {
	s.setNonce(answer.GetTypeUrl(), answer.GetNonce())
}

func (s *session) OnStreamDeltaResponse(_ int64, _ *discovery.DeltaDiscoveryRequest, answer *discovery.DeltaDiscoveryResponse) {
	s.setNonce(answer.GetTypeUrl(), answer.GetNonce())
}

func (s *session) OnStreamClosed(int64, *core.Node) { s.store.removeSession(s) }

func (s *session) OnDeltaStreamClosed(int64, *core.Node) { s.store.removeSession(s) }

func (s *session) setNonce(url, nonce string) {
	t, _ := resource.TypeOf(url)
	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()
	s.sending = s.state.types[t].setNonce(nonce)
}
