package helm_test

import (
	"testing"

	"github.com/fairlead/fairlead/internal/revision/helm/release"
)

func BenchmarkRenderIstiod(b *testing.B) {
	h := newHub(b)
	spec := h.istiod("v1.31.1")
	h.render(spec)
	for b.Loop() {
		h.Forget(spec.Namespace, spec.Name)
		h.render(spec)
	}
}

func BenchmarkInstallIstiod(b *testing.B) {
	h := newHub(b)
	spec := h.istiod("v1.31.1")
	h.render(spec)
	for b.Loop() {
		h.install(spec)
		b.StopTimer()
		h.uninstall(spec)
		h.render(spec)
		b.StartTimer()
	}
}

func BenchmarkInstallBase(b *testing.B) {
	h := newHub(b)
	spec := h.base("v1.31.1")
	h.render(spec)
	for b.Loop() {
		h.install(spec)
		b.StopTimer()
		h.uninstall(spec)
		h.render(spec)
		b.StartTimer()
	}
}

func BenchmarkUpgradeIstiod(b *testing.B) {
	h := newHub(b)
	spec := h.istiod("v1.31.1")
	h.install(spec)
	spec.Values["n"] = 0
	for b.Loop() {
		b.StopTimer()
		spec.Values["n"] = spec.Values["n"].(int) + 1
		h.render(spec)
		b.StartTimer()
		h.install(spec)
	}
}

// BenchmarkRestoreIstiod compares all objects of a release with what is live, which is just that.
func BenchmarkRestoreIstiod(b *testing.B) {
	h := newHub(b)
	spec := h.istiod("v1.31.1")
	h.install(spec)
	objects := h.render(spec)
	for b.Loop() {
		if changed := h.restoreAll(spec, objects); changed != nil {
			b.Fatal(changed)
		}
	}
}

func BenchmarkFingerprint(b *testing.B) {
	spec := release.Spec{Name: "istiod", Namespace: "istio-system", Chart: istio(b, "v1.31.1", "istiod"), Values: map[string]any{"revision": "canary"}}
	for b.Loop() {
		spec.Fingerprint()
	}
}
