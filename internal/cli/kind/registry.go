package kind

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fairlead/fairlead/internal/cli/connect"
	"github.com/fairlead/fairlead/internal/cli/console"
)

// Registry is all kinds.
type Registry []Kind

// Find returns the kind of a resource.
func (registry Registry) Find(r connect.Resource) (Kind, error) {
	for _, k := range registry {
		if slices.Contains(k.GroupKinds(), r.Kind()) {
			return k, nil
		}
	}
	if hint := First[PolicyExplainer](registry).PartHint(r); hint != "" {
		return nil, console.UsageErrorf("no passage starts from a %s; to list the policies of its destinations, run `%s`", r.Kind().Kind, hint)
	}
	return nil, console.UsageErrorf("no passage starts from %s; those that start one are %s", r.Kind().Kind, Names[Kind](registry))
}

// First is the first kind that implements T.
func First[T any](registry Registry) (first T) {
	for _, k := range registry {
		if able, ok := k.(T); ok {
			return able
		}
	}
	return first
}

// Names are the kinds that implement T.
func Names[T any](registry Registry) string {
	var names []string
	for _, k := range registry {
		if _, ok := k.(T); ok {
			for _, gk := range k.GroupKinds() {
				names = append(names, gk.Kind)
			}
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// Hint is what to do instead of a command that a kind has no use for, if the kind says so.
func Hint(k Kind, command string) string {
	if h, ok := k.(Hinter); ok {
		return h.Hints()[command]
	}
	return ""
}

// kindAnnotation of a flag is the kind that the flag is for.
const kindAnnotation = "fairlead.dev/kind"

// AddFlags adds the flags that kinds have for a command.
func (registry Registry) AddFlags(cmd *cobra.Command) {
	for _, k := range registry {
		if f, ok := k.(Flagger); ok {
			own := pflag.NewFlagSet("", pflag.ContinueOnError)
			f.AddFlags(cmd.Name(), own)
			own.VisitAll(func(flag *pflag.Flag) {
				flag.Annotations = map[string][]string{kindAnnotation: {k.GroupKinds()[0].Kind}}
			})
			cmd.Flags().AddFlagSet(own)
		}
	}
}

// ValidateFlags checks the values of the flags of all kinds.
func (registry Registry) ValidateFlags() error {
	for _, k := range registry {
		if f, ok := k.(Flagger); ok {
			if err := f.ValidateFlags(); err != nil {
				return err
			}
		}
	}
	return nil
}

// ForeignFlag is a flag that was given and is not for a kind, and the kind that it is for.
func ForeignFlag(flags *pflag.FlagSet, kind string) (flag, owner string) {
	flags.Visit(func(f *pflag.Flag) {
		if of := f.Annotations[kindAnnotation]; flag == "" && len(of) > 0 && of[0] != kind {
			flag, owner = f.Name, of[0]
		}
	})
	return flag, owner
}
