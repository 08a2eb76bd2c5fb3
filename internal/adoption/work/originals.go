package work

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
	"github.com/fairlead/fairlead/internal/adoption/member"
	"github.com/fairlead/fairlead/internal/adoption/model"
)

// maxOriginalSize is what fits into a Secret.
const maxOriginalSize = 1000 << 10

// originals are the objects that takeovers have changed, in Secrets of the hub beside the Works.
type originals struct {
	client client.Client
	reader client.Reader
}

// save stores an object that is about to be taken over.
func (u *originals) save(ctx context.Context, work *workv1alpha1.Work, i int, live *unstructured.Unstructured) error {
	text, err := compress(live)
	if err != nil {
		return err
	}
	if len(text) > maxOriginalSize {
		return member.AsUserError(fmt.Errorf("the object is not taken over, because its original of %d bytes is too large to be saved: "+
			"make the template equal to the object, or delete the object in the cluster", len(text)))
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: model.OriginalName(work), Labels: map[string]string{model.LabelRestore: "true"}},
		Data:       map[string][]byte{originalKey(i): text},
	}
	err = u.client.Create(ctx, secret, client.FieldOwner(model.FieldOwner))
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	have := &corev1.Secret{}
	if err := u.reader.Get(ctx, client.ObjectKeyFromObject(secret), have); err != nil {
		return err
	}
	if bytes.Equal(have.Data[originalKey(i)], text) {
		return nil
	}
	if have.Data == nil {
		have.Data = map[string][]byte{}
	}
	have.Data[originalKey(i)] = text
	return u.client.Update(ctx, have, client.FieldOwner(model.FieldOwner))
}

// load is the object before its takeover; nil if that changed nothing.
func (u *originals) load(ctx context.Context, work *workv1alpha1.Work, i int) (*unstructured.Unstructured, error) {
	secret := &corev1.Secret{}
	err := u.reader.Get(ctx, client.ObjectKey{Namespace: work.Namespace, Name: model.OriginalName(work)}, secret)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get the original: %w", err)
	}
	text, found := secret.Data[originalKey(i)]
	if err != nil || !found {
		return nil, nil
	}
	return decompress(text)
}

// delete deletes the originals of a Work.
func (u *originals) delete(ctx context.Context, work *workv1alpha1.Work) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: model.OriginalName(work)}}
	return client.IgnoreNotFound(u.client.Delete(ctx, secret))
}

func originalKey(i int) string { return fmt.Sprintf("manifest-%d", i) }

func compress(object *unstructured.Unstructured) ([]byte, error) {
	bare := object.DeepCopy()
	bare.SetManagedFields(nil)
	unstructured.RemoveNestedField(bare.Object, "status")
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	if err := errors.Join(json.NewEncoder(zip).Encode(bare.Object), zip.Close()); err != nil {
		return nil, fmt.Errorf("save %s: %w", model.ObjectOf(object), err)
	}
	return out.Bytes(), nil
}

func decompress(text []byte) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	zip, err := gzip.NewReader(bytes.NewReader(text))
	if err == nil {
		text, err = io.ReadAll(zip)
	}
	if err == nil {
		err = object.UnmarshalJSON(text)
	}
	if err != nil {
		return nil, fmt.Errorf("read the original: %w", err)
	}
	return object, nil
}
