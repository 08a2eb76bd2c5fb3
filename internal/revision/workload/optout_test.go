package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/fairlead/fairlead/api/sailoperator/v1"
)

// optOut is a namespace with the annotation by which it is left alone.
func optOut(name, labels, value string) part {
	return func(o *Observed) {
		namespace(name, labels)(o)
		ns := o.Inventory.Namespaces[name]
		ns.Annotations = map[string]string{v1.AnnotationSkipMigration: value}
		o.Inventory.Namespaces[name] = ns
	}
}

// TestNamespaceOptOut leaves the label of a namespace and its workloads alone.
func TestNamespaceOptOut(t *testing.T) {
	cart := deploy("shop/cart", runs(old, 2))
	const stays = `Skipped stay Namespace shop from "default-v1-24-0", SkippedByAnnotation: annotation sailoperator.io/skip-migration is set; its label and its workloads are left alone`
	cases := map[string]struct {
		parts []part
		want  []string
	}{
		"set": {[]part{optOut("shop", rev(old), "true"), cart}, []string{
			stays,
			`Skipped stay Deployment shop/cart from "default-v1-24-0", SkippedByAnnotation: annotation sailoperator.io/skip-migration of Namespace shop is set`,
		}},
		"whatever its workloads say": {[]part{optOut("shop", rev(old), "true"), deploy("shop/cart", runs(old, 2), annotated(v1.AnnotationSkipMigration, "false"))}, []string{
			stays,
			`Skipped stay Deployment shop/cart from "default-v1-24-0", SkippedByAnnotation: annotation sailoperator.io/skip-migration of Namespace shop is set`,
		}},
		"through a tag": {[]part{optOut("shop", rev("prod"), "true"), tag("prod", "Istio/default", target), cart}, []string{
			`Skipped stay Deployment shop/cart from "default-v1-24-0", SkippedByAnnotation: annotation sailoperator.io/skip-migration of Namespace shop is set, but new pods of it start on the target revision`,
		}},
		"a label of its own": {[]part{optOut("shop", "", "true"), deploy("shop/cart", podLabels(rev(old)), runs(old, 2))}, []string{
			`Skipped stay Deployment shop/cart from "default-v1-24-0", SkippedByAnnotation: annotation sailoperator.io/skip-migration of Namespace shop is set`,
		}},
		"not set": {[]part{optOut("shop", rev(old), "false"), cart}, []string{
			`Pending relabel Namespace shop from "default-v1-24-0", NamesOldRevision: selected by label istio.io/rev`,
			`Pending restart Deployment shop/cart from "default-v1-24-0", OnOldRevision: selected by the namespace label`,
		}},
		"in words": {[]part{optOut("shop", rev(old), "please"), cart}, []string{
			`Failed relabel Namespace shop from "default-v1-24-0", InvalidAnnotation: annotation sailoperator.io/skip-migration of Namespace shop is "please", and should be "true" or "false"`,
			`Failed restart Deployment shop/cart from "default-v1-24-0", InvalidAnnotation: annotation sailoperator.io/skip-migration of Namespace shop is "please", and should be "true" or "false"`,
		}},
		"only the workload": {[]part{namespace("shop", rev(old)), deploy("shop/cart", runs(old, 2), skipped)}, []string{
			`Pending relabel Namespace shop from "default-v1-24-0", NamesOldRevision: selected by label istio.io/rev`,
			`Skipped stay Deployment shop/cart from "default-v1-24-0", SkippedByAnnotation: annotation sailoperator.io/skip-migration is set, but new pods of it start on the target revision`,
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, reported(decide(observed(tc.parts...), at(60)).Plan)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}
