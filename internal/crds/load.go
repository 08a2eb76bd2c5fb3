package crds

import (
	"cmp"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

//go:embed manifests/*.yaml
var manifests embed.FS

//go:embed schema.lock
var schemaLock []byte

// generatorAnnotation names the tool that wrote a manifest. A new version of the tool alone must not cause a write.
const generatorAnnotation = "controller-gen.kubebuilder.io/version"

// All returns Fairlead's CRDs by name, each marked with its schema version.
func All() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	crds, err := load(manifests)
	if err != nil {
		return nil, err
	}
	versions, err := parseLock(schemaLock)
	if err != nil {
		return nil, err
	}
	for _, crd := range crds {
		locked, ok := versions[crd.Name]
		if !ok {
			return nil, fmt.Errorf("schema.lock does not know CRD %s: run go generate ./internal/crds", crd.Name)
		}
		mark(crd, locked.version)
	}
	return crds, nil
}

// Named returns Fairlead's CRDs of these names, or all of them.
func Named(names ...string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	all, err := All()
	if err != nil || len(names) == 0 {
		return all, err
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, name := range names {
		i := slices.IndexFunc(all, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("%s is not a CRD of Fairlead's", name)
		}
		crds = append(crds, all[i])
	}
	return crds, nil
}

// selectCRDs returns the given CRDs or, if there are none, those of Fairlead with these names.
func selectCRDs(given []*apiextensionsv1.CustomResourceDefinition, names []string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if given != nil {
		return given, nil
	}
	return Named(names...)
}

// Print writes Fairlead's CRDs as YAML documents that kubectl can apply. Without a webhook, those of several versions
// serve only the one that is stored.
func Print(w io.Writer, webhook *Webhook) error {
	crds, err := All()
	if err != nil {
		return err
	}
	for _, crd := range crds {
		var conversion *apiextensionsv1.CustomResourceConversion
		if webhook != nil {
			conversion = webhook.ownConversion(nil)
		}
		crd, _ = desiredCRD(nil, crd, conversion)
		text, err := yaml.Marshal(manifest(crd))
		if err != nil {
			return fmt.Errorf("write CRD %s as YAML: %w", crd.Name, err)
		}
		if _, err := fmt.Fprintf(w, "---\n%s", text); err != nil {
			return fmt.Errorf("print CRD %s: %w", crd.Name, err)
		}
	}
	return nil
}

func load(files fs.FS) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	paths, err := fs.Glob(files, "manifests/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("find CRD manifests: %w", err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, path := range paths {
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, fmt.Errorf("read CRD manifest: %w", err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			return nil, fmt.Errorf("read CRD manifest %s: %w", path, err)
		}
		delete(crd.Annotations, generatorAnnotation)
		crds = append(crds, crd)
	}
	slices.SortFunc(crds, func(a, b *apiextensionsv1.CustomResourceDefinition) int { return cmp.Compare(a.Name, b.Name) })
	return crds, nil
}

func mark(crd *apiextensionsv1.CustomResourceDefinition, version int) {
	metav1.SetMetaDataAnnotation(&crd.ObjectMeta, SchemaVersionAnnotation, strconv.Itoa(version))
}

// locked is what schema.lock says of one CRD.
type locked struct {
	version int
	hash    string
}

// parseLock reads lines of name, version and hash.
func parseLock(text []byte) (map[string]locked, error) {
	all := map[string]locked{}
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var name string
		var entry locked
		if _, err := fmt.Sscanf(line, "%s %d %s", &name, &entry.version, &entry.hash); err != nil {
			return nil, fmt.Errorf("schema.lock line %d: want name, version and hash, have %q", i+1, line)
		}
		if _, twice := all[name]; twice {
			return nil, fmt.Errorf("schema.lock line %d: %s is there twice", i+1, name)
		}
		all[name] = entry
	}
	return all, nil
}
