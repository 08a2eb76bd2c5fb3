package operator

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/fairlead/fairlead/internal/crds"
)

// migrateStored rewrites the stored objects of these CRDs in the current version, on the replica that leads. It never fails:
// objects that are left are retried later, and after every restart.
func migrateStored(config *rest.Config, names []string, log logr.Logger) manager.RunnableFunc {
	return func(ctx context.Context) error {
		backoff := wait.Backoff{Duration: time.Minute, Factor: 2, Jitter: 0.1, Cap: time.Hour, Steps: 1 << 30}
		for {
			_, err := crds.Migrate(ctx, config, crds.MigrateOptions{
				Names: names, Log: log, Progress: func(m crds.Migration) { logMigration(log, m) },
				Refused: func(object string, err error) {
					log.Error(err, "a stored object was left in its older version", "object", object)
				},
			})
			if err == nil || ctx.Err() != nil {
				return nil
			}
			delay := backoff.Step()
			log.Error(err, "stored objects were left behind, will be tried again", "after", delay.Round(time.Second).String())
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(delay):
			}
		}
	}
}

func logMigration(log logr.Logger, m crds.Migration) {
	if len(m.From) == 0 {
		return
	}
	what := "rewriting stored objects"
	if m.Done {
		what = "rewrote stored objects"
	}
	log.Info(what, "crd", m.Name, "from", m.From, "to", m.To, "rewritten", m.Rewritten, "failed", m.Failed, "remaining", m.Remaining)
}
