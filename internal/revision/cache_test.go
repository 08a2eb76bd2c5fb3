package revision

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/fairlead/fairlead/internal/revision/usage"
)

// recordingManager keeps what is added to it.
type recordingManager struct {
	ctrl.Manager
	added []manager.Runnable
}

func (*recordingManager) GetConfig() *rest.Config     { return &rest.Config{} }
func (*recordingManager) GetHTTPClient() *http.Client { return http.DefaultClient }
func (*recordingManager) GetScheme() *runtime.Scheme  { return clientgoscheme.Scheme }
func (*recordingManager) GetRESTMapper() meta.RESTMapper {
	return testrestmapper.TestOnlyStaticRESTMapper(clientgoscheme.Scheme)
}
func (m *recordingManager) Add(r manager.Runnable) error { m.added = append(m.added, r); return nil }

// TestStandbyCachesWorkloads: controllers wait for the cache while another operator leads, and an operator whose caches do not sync ends.
func TestStandbyCachesWorkloads(t *testing.T) {
	mgr := &recordingManager{}
	if _, err := newWorkloadCache(mgr, usage.NewWatchErrors()); err != nil {
		t.Fatal(err)
	}
	for _, added := range mgr.added {
		if r, ok := added.(manager.LeaderElectionRunnable); !ok || r.NeedLeaderElection() {
			t.Errorf("%T starts only in an operator that leads", added)
		}
	}
	if len(mgr.added) == 0 {
		t.Error("the manager starts no cache")
	}
}
