package adoption

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/fairlead/fairlead/api/work/v1alpha1"
)

const (
	// AnnotationKeep set to "true" on a Work that is going has its object stay as it is, for there will be another Work.
	AnnotationKeep = "fairlead.dev/keep"
	// AnnotationReleased set to "true" on a binding that is going tells that nobody needs its resource any more.
	AnnotationReleased = "fairlead.dev/released"
	// AnnotationUndo set to "true" on a binding or a Work that is going has it put back what it took over.
	AnnotationUndo = "fairlead.dev/undo"
	// LabelUndo set to "true" marks the Secrets with what was there before.
	LabelUndo = "fairlead.dev/undo"
)

// largestRecord is what fits into a Secret.
const largestRecord = 1000 << 10

// undoing keeps what takeovers change, on the hub, beside the Works.
type undoing struct {
	client client.Client
	reader client.Reader
}

func undoName(work *workv1alpha1.Work) string { return shortened("before-"+work.Name, work.Name) }

// keep remembers an object that is about to be written over.
func (u *undoing) keep(ctx context.Context, work *workv1alpha1.Work, i int, live *unstructured.Unstructured) error {
	text, err := packed(live)
	if err != nil {
		return err
	}
	if len(text) > largestRecord {
		return tellable(fmt.Errorf("it is not taken over, for its %d bytes are more than can be kept to put it back: "+
			"make the template equal to it, or delete it in the cluster", len(text)))
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: undoName(work), Labels: map[string]string{LabelUndo: "true"}},
		Data:       map[string][]byte{recordKey(i): text},
	}
	err = u.client.Create(ctx, secret, client.FieldOwner(FieldOwner))
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	have := &corev1.Secret{}
	if err := u.reader.Get(ctx, client.ObjectKeyFromObject(secret), have); err != nil {
		return err
	}
	if bytes.Equal(have.Data[recordKey(i)], text) {
		return nil
	}
	if have.Data == nil {
		have.Data = map[string][]byte{}
	}
	have.Data[recordKey(i)] = text
	return u.client.Update(ctx, have, client.FieldOwner(FieldOwner))
}

// earlier is what was there before a takeover; nil if that changed nothing.
func (u *undoing) earlier(ctx context.Context, work *workv1alpha1.Work, i int) (*unstructured.Unstructured, error) {
	secret := &corev1.Secret{}
	err := u.reader.Get(ctx, client.ObjectKey{Namespace: work.Namespace, Name: undoName(work)}, secret)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("find out what was there before: %w", err)
	}
	text, found := secret.Data[recordKey(i)]
	if err != nil || !found {
		return nil, nil
	}
	return unpacked(text)
}

// forget what was kept for a Work.
func (u *undoing) forget(ctx context.Context, work *workv1alpha1.Work) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: undoName(work)}}
	return client.IgnoreNotFound(u.client.Delete(ctx, secret))
}

func recordKey(i int) string { return fmt.Sprintf("manifest-%d", i) }

func packed(object *unstructured.Unstructured) ([]byte, error) {
	bare := object.DeepCopy()
	bare.SetManagedFields(nil)
	unstructured.RemoveNestedField(bare.Object, "status")
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	if err := json.NewEncoder(zip).Encode(bare.Object); err != nil {
		return nil, fmt.Errorf("keep %s %s: %w", object.GetKind(), nameOf(object), err)
	}
	if err := zip.Close(); err != nil {
		return nil, fmt.Errorf("keep %s %s: %w", object.GetKind(), nameOf(object), err)
	}
	return out.Bytes(), nil
}

func unpacked(text []byte) (*unstructured.Unstructured, error) {
	zip, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read what was there before: %w", err)
	}
	plain, err := io.ReadAll(zip)
	if err != nil {
		return nil, fmt.Errorf("read what was there before: %w", err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(plain); err != nil {
		return nil, fmt.Errorf("read what was there before: %w", err)
	}
	return object, nil
}

// restored is an object as it was before, without our marks, and with what others have added since.
func restored(earlier, live *unstructured.Unstructured, scaled bool) *unstructured.Unstructured {
	want := earlier.DeepCopy()
	if scaled {
		replace(want, live, "spec", "replicas")
	}
	ours := ownKeys(live)
	want.SetLabels(joined(earlier.GetLabels(), nil, joined(live.GetLabels(), append(ours.labels, markKeys...))))
	want.SetAnnotations(joined(earlier.GetAnnotations(), nil, joined(live.GetAnnotations(), ours.annotations)))
	succeed(want, live)
	if status, found := live.Object["status"]; found {
		want.Object["status"] = status
	}
	return want
}

// same tells whether two objects say the same, but for our marks and for what no user sets.
func same(a, b *unstructured.Unstructured) bool {
	left, err := digestOf(said(a))
	if err != nil {
		return false
	}
	right, err := digestOf(said(b))
	return err == nil && left == right
}

func said(object *unstructured.Unstructured) map[string]any {
	content := map[string]any{"labels": joined(object.GetLabels(), markKeys), "annotations": object.GetAnnotations()}
	for field, value := range object.Object {
		if field != "metadata" && field != "status" {
			content[field] = value
		}
	}
	return content
}
