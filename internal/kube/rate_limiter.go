package kube

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

// RateLimiter is how long failures are waited out: nobody who has mended something should wait for minutes.
func RateLimiter[T comparable]() workqueue.TypedRateLimiter[T] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[T](100*time.Millisecond, 10*time.Second)
}
