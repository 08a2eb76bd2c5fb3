package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// Enqueuer wakes a controller for an object of which the hub has no news.
type Enqueuer chan event.GenericEvent

func NewEnqueuer() Enqueuer { return make(Enqueuer, 1024) }

func (b Enqueuer) Enqueue(key client.ObjectKey) {
	b <- event.GenericEvent{Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}}
}
