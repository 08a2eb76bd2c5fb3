package supervisor

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"k8s.io/client-go/kubernetes"

	"github.com/fairlead/fairlead/localkube/internal/clusterdir"
	"github.com/fairlead/fairlead/localkube/internal/pki"
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
	mux.HandleFunc("POST "+pathStop, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		s.quit()
	})
	mux.HandleFunc("GET "+pathStatus, func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Err() != nil {
			http.Error(w, "localkube is stopping", http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(s.records())
	})
	mux.HandleFunc("PUT "+pathServe, s.serveServe)
	mux.HandleFunc("PUT "+pathIstiod, s.serveIstiod)
	mux.HandleFunc("GET "+pathIstiod+"/{revision}", s.serveIstiodState)
	return mux
}

func (s *Supervisor) serveStart(w http.ResponseWriter, r *http.Request) {
	tell := lines(w)
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

func (s *Supervisor) serveServe(w http.ResponseWriter, r *http.Request) {
	var want clusterdir.Serve
	if err := json.NewDecoder(r.Body).Decode(&want); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	err := s.changeSettings(func(settings *clusterdir.Settings) {
		settings.Serves = slices.DeleteFunc(settings.Serves, func(old clusterdir.Serve) bool {
			return old.Namespace == want.Namespace && old.Service == want.Service && old.Port == want.Port
		})
		if want.To != "" {
			settings.Serves = append(settings.Serves, want)
		}
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.egress.Recheck(r.Context())
}

func (s *Supervisor) serveIstiod(w http.ResponseWriter, r *http.Request) {
	var want clusterdir.Istiod
	if err := json.NewDecoder(r.Body).Decode(&want); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	err := s.changeSettings(func(settings *clusterdir.Settings) {
		if !slices.ContainsFunc(settings.Istiods, func(i clusterdir.Istiod) bool { return i.Revision == want.Revision }) {
			settings.Istiods = append(settings.Istiods, want)
		}
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	i := s.addIstiod(want)
	if i.Namespace != want.Namespace {
		http.Error(w, fmt.Sprintf("revision %s runs in namespace %s already", i.Revision, i.Namespace), http.StatusConflict)
		return
	}
	i.revive()
	s.answerIstiod(w, r, i)
}

func (s *Supervisor) serveIstiodState(w http.ResponseWriter, r *http.Request) {
	for _, i := range s.listIstiods() {
		if i.Revision == r.PathValue("revision") {
			s.answerIstiod(w, r, i)
			return
		}
	}
	http.Error(w, "no istiod of that revision was asked for", http.StatusNotFound)
}

func (s *Supervisor) answerIstiod(w http.ResponseWriter, r *http.Request, i *istiod) {
	client, err := s.client()
	if err == nil {
		err = i.advance(r.Context(), client)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(IstiodState{Record: i.record(), NotYet: errorText(i.injects(r.Context(), client))})
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

func (s *Supervisor) client() (kubernetes.Interface, error) {
	config, err := pki.AdminConfig(s.dir)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// lines writes a message a line, each sent at once.
func lines(w http.ResponseWriter) func(message) {
	encoder, flush := json.NewEncoder(w), http.NewResponseController(w)
	return func(m message) {
		_ = encoder.Encode(m)
		_ = flush.Flush()
	}
}
