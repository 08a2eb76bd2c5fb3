package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fairlead/fairlead/internal/meshservice/model"
	"github.com/fairlead/fairlead/internal/meshservice/xds/resource"
)

// maxNACKMessage bounds what is kept of a proxy's own words.
const maxNACKMessage = 500

// session is one stream. It is what go-control-plane watches and calls back, for that stream alone.
type session struct {
	store *Store
	// identify is asked about the first request.
	identify func(ctx context.Context, node string) (model.ProxyID, error)
	ctx      context.Context
	end      context.CancelCauseFunc
	since    time.Time
	// identified is told whose stream it is.
	identified chan model.ProxyID
	node       string

	// proxy is whose stream it is, nil until that is known. Its lock guards what follows.
	proxy   *proxy
	state   streamState
	watches [4]watch
	timer   *time.Timer
}

// authenticate finds out whose stream it is.
func (s *session) authenticate(node string) error {
	if s.proxy != nil {
		if node != "" && node != s.node {
			return status.Errorf(codes.InvalidArgument, "the node id changed from %q to %q: open a new stream for another node", s.node, node)
		}
		return nil
	}
	id, err := s.identify(s.ctx, node)
	if err != nil {
		return err
	}
	s.node = node
	if err := s.store.addSession(id, s); err != nil {
		return err
	}
	s.identified <- id
	s.store.notify(id)
	return nil
}

// CreateWatch takes a request of the state of the world.
func (s *session) CreateWatch(request *discovery.DiscoveryRequest, sub cache.Subscription, to chan cache.Response) (func(), error) {
	return s.watch(request.GetTypeUrl(), func(t resource.Type, p *typeState) watch {
		if t == resource.Listener && !p.subscribed {
			s.state.hadListeners = request.GetVersionInfo() != ""
		}
		first := !p.subscribed
		p.dropUnsent()
		s.acknowledge(t, request.GetResponseNonce(), nackMessage(t, request.GetErrorDetail() != nil, request.GetErrorDetail().GetMessage()))
		p.subscribe(sub.IsWildcard(), sub.SubscribedResources())
		if first {
			s.resume(t, request.GetVersionInfo())
		}
		return &sotwWatch{request, to}
	})
}

// CreateDeltaWatch takes a request of what has changed.
func (s *session) CreateDeltaWatch(request *discovery.DeltaDiscoveryRequest, sub cache.Subscription, to chan cache.DeltaResponse) (func(), error) {
	return s.watch(request.GetTypeUrl(), func(t resource.Type, p *typeState) watch {
		first := !p.subscribed
		if first {
			p.known = listOfVersions(request.GetInitialResourceVersions())
			p.acked = p.known
			if t == resource.Listener {
				s.state.hadListeners = len(p.known) > 0
			}
		}
		s.acknowledge(t, request.GetResponseNonce(), nackMessage(t, request.GetErrorDetail() != nil, request.GetErrorDetail().GetMessage()))
		p.subscribe(sub.IsWildcard(), sub.SubscribedResources())
		if !first {
			// Who asks again for what it has wants to be sent it again.
			p.resend(listOfNames(request.GetResourceNamesSubscribe()))
			p.resend(listOfNames(request.GetResourceNamesUnsubscribe()))
		}
		return &deltaWatch{request, to}
	})
}

// acknowledge takes the proxy's word on an answer, and counts one against it.
func (s *session) acknowledge(t resource.Type, nonce, against string) {
	if s.state.acknowledge(t, nonce, against, s.proxy.config.Version(t), time.Now()) && against != "" && !s.proxy.gone {
		nacks.WithLabelValues(s.proxy.id.Mesh).Inc()
	}
}

// watch takes the word of a request, and leaves it to be answered.
func (s *session) watch(url string, take func(resource.Type, *typeState) watch) (func(), error) {
	t, served := resource.TypeOf(url)
	if !served {
		return nil, nil // there is none of that type, nor will there be
	}
	p := s.proxy
	p.mu.Lock()
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

// sendUpdates answers what can be answered by now, and comes back when time alone allows more.
func (s *session) sendUpdates() {
	s.stopTimer()
	now, config := time.Now(), s.proxy.config
	arranged := s.state.planPrewarm(config, now)
	returning, end := s.state.isResuming(now)
	again := earliest(arranged.requeueAt, end)
	for _, t := range resource.Types() {
		if leads := t == resource.Listener || t == resource.Route; s.watches[t] == nil || leads && returning {
			continue
		}
		p := &s.state.types[t]
		next, later := s.state.nextResources(t, config, arranged, now)
		again = earliest(again, later)
		if t == resource.Listener && s.state.keepsListeners(config, now) {
			continue
		}
		send, sent := s.watches[t].respond(t, p, next, config.Version(t))
		if send == nil {
			p.known = next
			s.state.updateCurrentVersion(t, config)
			continue
		}
		s.state.recordResponse(t, next, sent, config.Version(t))
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

// onTimer advances when the time has come.
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

func listOfNames(names []string) list {
	versions := make(map[string]string, len(names))
	for _, name := range names {
		versions[name] = ""
	}
	return listOfVersions(versions)
}

// nackMessage is what a proxy says against an answer, empty for nothing.
func nackMessage(t resource.Type, refused bool, message string) string {
	if !refused {
		return ""
	}
	url := t.URL()
	return fmt.Sprintf("%s: %.*s", url[strings.LastIndexByte(url, '.')+1:], maxNACKMessage, message)
}
