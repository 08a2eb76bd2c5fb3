package materialize

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/kind"
	"github.com/fairlead/fairlead/internal/cli/render"
	"github.com/fairlead/fairlead/internal/rollout"
	"github.com/fairlead/fairlead/internal/rollout/hash"
)

// planAbort writes back what the generation that serves was made from.
func planAbort(e environment, r connect.Resource, _ time.Time) (kind.Change, error) {
	if done, err := checkAbort(e.Observed); done != "" || err != nil {
		return kind.Change{Noop: done}, err
	}
	active := e.Active()
	completed := active.Record.Materialize
	rolls, _ := hash.Changes(e.Materialize, completed)
	return kind.Change{
		Show:     func(w io.Writer) { printAbort(w, e, rolls) },
		Question: "Restore that spec?",
		Apply: func(ctx context.Context) error {
			return patchMaterialize(ctx, r, e.Materialize, func(m *v1alpha2.Materialize) error { return restoreSpec(m, completed, rolls) })
		},
		Done: fmt.Sprintf("the spec of generation %d is restored", active.Number),
	}, nil
}

// checkAbort tells why there is nothing to take back, or no way to.
func checkAbort(o rollout.Observed) (done string, err error) {
	switch active, next := o.Active(), o.Next().Number; {
	case o.Promoting():
		return "", fmt.Errorf("generation %d is being promoted, which cannot be aborted: "+
			"change the spec to roll out generation %d afterwards", next, next+1)
	case active == nil:
		return "", errors.New("no rollout has been completed, so there is no spec to restore: change the spec, or delete the resource")
	case o.Hash == o.Completed():
		return fmt.Sprintf("no rollout is in progress: generation %d serves the current spec", active.Number), nil
	case o.UnknownHash != nil:
		return "", fmt.Errorf("cannot determine what to abort: %w", o.UnknownHash)
	case active.Record == nil:
		return "", fmt.Errorf("generation %d has no record of its spec: change the spec back yourself", active.Number)
	}
	return "", nil
}

func printAbort(w io.Writer, e environment, rolls []hash.Change) {
	m, next := e.Materialize, e.Next().Number
	becomes := "which serves"
	if e.IsDown() {
		becomes = "which is started again: nothing serves until then"
	}
	line := fmt.Sprintf("Materialize %s/%s goes back to the spec of generation %d, %s.", m.Namespace, m.Name, e.Active().Number, becomes)
	if e.Generations[next] != nil {
		line += fmt.Sprintf(" Generation %d is removed.", next)
	}
	render.Paragraph(w, line)
	var rows [][]string
	for _, c := range rolls {
		rows = append(rows, []string{c.Field, render.OrDash(c.From), render.OrDash(c.To)})
	}
	if said := e.Materialize.Spec.ForcePromote; said != "" {
		rows = append(rows, []string{"forcePromote", shortHash(said), render.OrDash("")})
	}
	render.PrintRows(w, render.Text, []string{"FIELD", "FROM", "BACK TO"}, rows)
	fmt.Fprintln(w, "\nApplying the newer manifest again starts the rollout again.")
}

// maxHashLength is how much of a hash a table has room for.
const maxHashLength = 12

func shortHash(hash string) string {
	if len(hash) <= maxHashLength {
		return hash
	}
	return hash[:maxHashLength] + "..."
}

// restoreSpec gives m the fields of another Materialize that changes name, and no others: what is the same in another way of
// writing stays as it is written. Whoever approved of what is taken back has not approved of the next one like it.
func restoreSpec(m, completed *v1alpha2.Materialize, changes []hash.Change) error {
	now, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&m.Spec)
	if err != nil {
		return err
	}
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&completed.Spec)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if strings.HasPrefix(c.Field, "metadata.annotations[") {
			restoreAnnotation(m, completed)
			continue
		}
		field, _, _ := strings.Cut(strings.ReplaceAll(c.Field, "[", "."), ".")
		if value, found := before[field]; found {
			now[field] = value
		} else {
			delete(now, field)
		}
	}
	delete(now, "forcePromote")
	m.Spec = v1alpha2.MaterializeSpec{}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(now, &m.Spec)
}

func restoreAnnotation(m, completed *v1alpha2.Materialize) {
	if value, found := completed.Annotations[v1alpha2.AnnotationForceRollout]; found {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha2.AnnotationForceRollout, value)
		return
	}
	delete(m.Annotations, v1alpha2.AnnotationForceRollout)
}
