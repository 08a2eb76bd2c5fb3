package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
)

// Paths of the control socket.
const (
	pathStart  = "/start"
	pathStop   = "/stop"
	pathStatus = "/status"
	pathServe  = "/serve"
	pathIstiod = "/istiod"
)

// message is a line of the answer to a request that takes its time.
type message struct {
	Doing string `json:"doing,omitempty"`
	Step  string `json:"step,omitempty"`
	Error string `json:"error,omitempty"`
	Done  bool   `json:"done,omitempty"`
}

func (s *Supervisor) control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathStart, s.serveStart)
	mux.Handle("POST "+pathStop, answer(func(*http.Request) (any, error) {
		s.quit()
		return nil, nil
	}))
	mux.Handle("GET "+pathStatus, answer(func(r *http.Request) (any, error) {
		if r.Context().Err() != nil {
			return nil, errors.New("localkube is stopping")
		}
		return s.records(), nil
	}))
	mux.Handle("PUT "+pathServe, answer(s.putServe))
	mux.Handle("PUT "+pathIstiod, answer(s.putIstiod))
	mux.Handle("GET "+pathIstiod+"/{revision}", answer(s.getIstiod))
	return mux
}

// answer serves the value that a request leads to, or the error.
type answer func(*http.Request) (any, error)

func (a answer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	value, err := a(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(value)
}

func (s *Supervisor) serveStart(w http.ResponseWriter, r *http.Request) {
	encoder, flush := json.NewEncoder(w), http.NewResponseController(w)
	tell := func(m message) {
		_ = encoder.Encode(m)
		_ = flush.Flush()
	}
	err := s.start(r.Context(), Progress{
		Doing: func(what string) { tell(message{Doing: what}) },
		Done: func(what string) {
			s.log.Info(what)
			tell(message{Step: what})
		},
	})
	if err != nil {
		s.log.Error("start", "err", err)
		tell(message{Error: err.Error()})
		return
	}
	tell(message{Done: true})
}

func (s *Supervisor) putServe(r *http.Request) (any, error) {
	var want clusterdir.Serve
	if err := json.NewDecoder(r.Body).Decode(&want); err != nil {
		return nil, err
	}
	err := s.changeSettings(func(settings *clusterdir.Settings) {
		settings.Serves = slices.DeleteFunc(settings.Serves, func(old clusterdir.Serve) bool {
			return old.Namespace == want.Namespace && old.Service == want.Service && old.Port == want.Port
		})
		if want.To != "" {
			settings.Serves = append(settings.Serves, want)
		}
	})
	if err == nil {
		s.egress.Recheck(r.Context())
	}
	return nil, err
}

func (s *Supervisor) putIstiod(r *http.Request) (any, error) {
	var want clusterdir.Istiod
	if err := json.NewDecoder(r.Body).Decode(&want); err != nil {
		return nil, err
	}
	err := s.changeSettings(func(settings *clusterdir.Settings) {
		if !slices.ContainsFunc(settings.Istiods, func(i clusterdir.Istiod) bool { return i.Revision == want.Revision }) {
			settings.Istiods = append(settings.Istiods, want)
		}
	})
	if err != nil {
		return nil, err
	}
	i := s.addIstiod(want)
	if i.Namespace != want.Namespace {
		return nil, fmt.Errorf("revision %s runs in namespace %s already", i.Revision, i.Namespace)
	}
	i.revive()
	return s.istiodState(r.Context(), i)
}

func (s *Supervisor) getIstiod(r *http.Request) (any, error) {
	for _, i := range s.listIstiods() {
		if i.Revision == r.PathValue("revision") {
			return s.istiodState(r.Context(), i)
		}
	}
	return nil, errors.New("no istiod of that revision was asked for")
}

func (s *Supervisor) istiodState(ctx context.Context, i *istiod) (any, error) {
	client, err := s.client()
	if err != nil {
		return nil, err
	}
	if err := i.advance(ctx, client); err != nil {
		return nil, err
	}
	return IstiodState{Record: i.record(), NotYet: errorText(i.injects(ctx, client))}, nil
}

// IstiodState says how far a revision's control plane is; nothing in NotYet
// means that it injects.
type IstiodState struct {
	Record clusterdir.Record `json:"record"`
	NotYet string            `json:"notYet,omitempty"`
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// client is made anew for each use: the port of the API server may have changed.
func (s *Supervisor) client() (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.dir.Kubeconfig())
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}
