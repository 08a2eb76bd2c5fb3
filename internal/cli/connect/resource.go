package connect

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead/fairlead/internal/cli/console"
)

// Resource is what TYPE NAME name.
type Resource struct {
	Mapping *meta.RESTMapping
	Key     client.ObjectKey
}

func (r Resource) Kind() schema.GroupKind { return r.Mapping.GroupVersionKind.GroupKind() }

// String names the resource as kubectl would: istio.sailoperator.io/default.
func (r Resource) String() string {
	kind := strings.ToLower(r.Mapping.GroupVersionKind.Kind)
	return kind + "." + r.Mapping.GroupVersionKind.Group + "/" + r.Key.Name
}

// NotFound names the namespace, which is what people tend to get wrong.
func (r Resource) NotFound() error {
	if r.Key.Namespace != "" {
		return fmt.Errorf("%s does not exist in namespace %s", r, r.Key.Namespace)
	}
	return fmt.Errorf("%s does not exist", r)
}

// typeAndName reads TYPE NAME, or TYPE/NAME as kubectl prints it.
func typeAndName(args []string) (kind, name string, ok bool) {
	if len(args) == 1 {
		kind, name, _ = strings.Cut(args[0], "/")
	} else if len(args) == 2 {
		kind, name = args[0], args[1]
	}
	return kind, name, kind != "" && name != ""
}

func RequireTypeAndName(cmd *cobra.Command, args []string) error {
	if _, _, ok := typeAndName(args); ok {
		return nil
	}
	// The first example of a command is one of a kind that it is for.
	example, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
	return console.UsageErrorf("%s takes TYPE and NAME, such as `%s`, but got %q", cmd.CommandPath(), example, strings.Join(args, " "))
}

// Resolve understands TYPE as kubectl does: kind, singular, plural or short name, with or without version and group.
func (c *Cluster) Resolve(args []string) (Resource, error) {
	kind, name, _ := typeAndName(args)
	mapping, err := MappingFor(c.Mapper, kind)
	if meta.IsNoMatchError(err) {
		return Resource{}, console.UsageErrorf("the cluster has no resource type %q; if it is one of Fairlead's, "+
			"its CRDs are not installed: `fairlead crds install`", kind)
	}
	if err != nil {
		return Resource{}, fmt.Errorf("look up resource type %q: %w", kind, err)
	}
	r := Resource{Mapping: mapping, Key: client.ObjectKey{Name: name}}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		r.Key.Namespace = c.Namespace
	}
	return r, nil
}

func MappingFor(mapper meta.RESTMapper, kind string) (*meta.RESTMapping, error) {
	full, group := schema.ParseResourceArg(strings.ToLower(kind))
	if full != nil {
		if gvk, err := mapper.KindFor(*full); err == nil {
			return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		}
	}
	gvk, err := mapper.KindFor(group.WithVersion(""))
	if err != nil {
		return nil, err
	}
	return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

// NotFoundOr returns NotFound for an error that says so, and any other error as it is.
func (r Resource) NotFoundOr(err error) error {
	if apierrors.IsNotFound(err) {
		return r.NotFound()
	}
	return err
}

// FieldOwner is the field manager of what commands write.
const FieldOwner = "fairlead/cli"

func (c *Cluster) Annotate(ctx context.Context, r Resource, key string, value any) error {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(r.Mapping.GroupVersionKind)
	object.SetNamespace(r.Key.Namespace)
	object.SetName(r.Key.Name)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{key: value}},
	})
	if err != nil {
		return err
	}
	return c.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldOwner))
}
