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
	Cluster *Cluster
	Mapping *meta.RESTMapping
	Key     client.ObjectKey
}

func (r Resource) Kind() schema.GroupKind { return r.Mapping.GroupVersionKind.GroupKind() }

// String names the resource as kubectl would: istio.sailoperator.io/default.
func (r Resource) String() string {
	kind := strings.ToLower(r.Mapping.GroupVersionKind.Kind)
	return kind + "." + r.Mapping.GroupVersionKind.Group + "/" + r.Key.Name
}

// Get reads the resource.
func (r Resource) Get(ctx context.Context, reader client.Reader, into client.Object) error {
	if err := reader.Get(ctx, r.Key, into); err != nil {
		return r.NotFoundOr(fmt.Errorf("get %s: %w", r, err))
	}
	return nil
}

// NotFoundOr names the namespace, which is what people tend to get wrong, in a NotFound. Other errors stay as they are.
func (r Resource) NotFoundOr(err error) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	text := fmt.Sprintf("%s does not exist", r)
	if r.Key.Namespace != "" {
		text += " in namespace " + r.Key.Namespace
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Message: text}}
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

// UnknownTypeError is of a TYPE that the cluster does not have.
type UnknownTypeError struct{ Type string }

func (e UnknownTypeError) Error() string {
	return fmt.Sprintf("the cluster has no resource type %q", e.Type)
}

// Resolve connects, and understands TYPE as kubectl does: kind, singular, plural or short name, with or without version and group.
func (c *Flags) Resolve(args []string) (Resource, error) {
	cluster, err := c.Connect()
	if err != nil {
		return Resource{}, err
	}
	kind, name, _ := typeAndName(args)
	mapping, err := MappingFor(cluster.Mapper, kind)
	if meta.IsNoMatchError(err) {
		return Resource{}, UnknownTypeError{kind}
	}
	if err != nil {
		return Resource{}, fmt.Errorf("look up resource type %q: %w", kind, err)
	}
	r := Resource{Cluster: cluster, Mapping: mapping, Key: client.ObjectKey{Name: name}}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		r.Key.Namespace = cluster.Namespace
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

// FieldOwner is the field manager of what commands write.
const FieldOwner = "fairlead/cli"

// Annotate sets an annotation, or removes it if the value is nil.
func (r Resource) Annotate(ctx context.Context, key string, value any) error {
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
	return r.Cluster.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldOwner))
}
