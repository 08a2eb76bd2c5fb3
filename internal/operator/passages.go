package operator

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/fairlead/fairlead/internal/adoption"
	"github.com/fairlead/fairlead/internal/adoption/model"
	"github.com/fairlead/fairlead/internal/meshservice"
	"github.com/fairlead/fairlead/internal/revision"
	"github.com/fairlead/fairlead/internal/revision/admission"
	"github.com/fairlead/fairlead/internal/revision/helm/charts"
	"github.com/fairlead/fairlead/internal/rollout"
	"github.com/fairlead/fairlead/internal/rollout/conversion"
)

// Passage is one kind of move that the operator can run.
type Passage struct {
	Name string
	// CRDs that the passage needs.
	CRDs []string
	// Conversion, if set, is the webhook that converts the objects of its CRDs, within as many bytes of memory as it is given.
	Conversion func(logr.Logger, int64) http.Handler
	// Caches are the kinds that the passage reads from the cache. They must be served before the passage starts, no other
	// kind is cached, and the operator is ready when all of them are synced.
	Caches []client.Object
	Setup  func(ctrl.Manager, Options) error
}

// Passages are all that exist, in the order in which they start.
func Passages() []Passage {
	return []Passage{
		{Name: revision.Name, CRDs: revisionCRDs, Caches: revision.Caches(), Setup: setupRevision},
		{
			Name: model.Passage, CRDs: adoptionCRDs, Caches: adoption.Caches(),
			Setup: func(mgr ctrl.Manager, options Options) error { return adoption.Setup(mgr, options.Members) },
		},
		{
			Name: rollout.Name, CRDs: rolloutCRDs, Conversion: conversion.Handler, Caches: rollout.Caches(),
			Setup: func(mgr ctrl.Manager, options Options) error { return rollout.Setup(mgr, options.Rollout) },
		},
		{
			Name: meshservice.Name, CRDs: meshCRDs, Caches: meshservice.Caches(),
			Setup: func(mgr ctrl.Manager, options Options) error { return meshservice.Setup(mgr, options.Mesh) },
		},
	}
}

var revisionCRDs = []string{"istios.sailoperator.io", "istiorevisions.sailoperator.io", "istiorevisiontags.sailoperator.io"}

var adoptionCRDs = []string{
	"propagationpolicies.policy.karmada.io", "clusterpropagationpolicies.policy.karmada.io", "resourcebindings.work.karmada.io",
	"clusterresourcebindings.work.karmada.io", "works.work.karmada.io", "clusters.cluster.karmada.io",
}

var rolloutCRDs = []string{"materializes.materialize.cloud"}

var meshCRDs = []string{
	"meshes.kuma.io", "meshconsumerslices.fairlead.dev", "meshservingreports.fairlead.dev", "dataplanes.kuma.io", "zoneingresses.kuma.io", "meshservices.kuma.io", "meshmultizoneservices.kuma.io",
	"hostnamegenerators.kuma.io", "meshtimeouts.kuma.io", "meshretries.kuma.io", "meshcircuitbreakers.kuma.io",
	"meshloadbalancingstrategies.kuma.io", "meshhttproutes.kuma.io", "meshtcproutes.kuma.io",
}

func setupRevision(mgr ctrl.Manager, options Options) error {
	source, err := charts.New(options.Charts)
	if err != nil {
		return err
	}
	mgr.GetLogger().Info("Istio's charts come from " + source.String())
	if options.InstallCRDs && !isInCluster(mgr.GetConfig(), rest.InClusterConfig) {
		if err := mgr.Add(deletionWarnings(mgr)); err != nil {
			return err
		}
	}
	return revision.Setup(mgr, source)
}

// deletionWarnings installs the admission policies that the chart brings where the operator runs in a cluster. An operator works
// without them as well.
func deletionWarnings(mgr ctrl.Manager) manager.Runnable {
	return manager.RunnableFunc(func(ctx context.Context) error {
		if err := admission.Install(ctx, mgr.GetClient(), mgr.GetAPIReader()); err != nil && ctx.Err() == nil {
			mgr.GetLogger().Error(err, "cannot install the admission policies that warn of deletions of an Istio or IstioRevisionTag in use")
		}
		return nil
	})
}

// Names of the passages, as --passages takes them.
func Names() []string { return namesOf(Passages()) }

func namesOf(passages []Passage) []string {
	var names []string
	for _, p := range passages {
		names = append(names, p.Name)
	}
	return names
}

// selectPassages keeps those asked for, in the order in which they start; asking for none means all.
func selectPassages(known []Passage, asked []string) ([]Passage, error) {
	if len(asked) == 0 {
		return known, nil
	}
	for _, name := range asked {
		if names := namesOf(known); !slices.Contains(names, name) {
			return nil, fmt.Errorf("unknown passage %q: the known ones are %s", name, strings.Join(names, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(known), func(p Passage) bool { return !slices.Contains(asked, p.Name) }), nil
}

// crdsOf are the CRDs of passages.
func crdsOf(passages []Passage) []string {
	var names []string
	for _, p := range passages {
		names = append(names, p.CRDs...)
	}
	return names
}
