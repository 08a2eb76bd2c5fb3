package main

import (
	"bytes"
	"os"
	"runtime"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func (r release) testSBOMs(t *testing.T) {
	for file, want := range map[string]struct {
		kind cdx.ComponentType
		name string
	}{
		"fairlead_0.1.0_windows_amd64.cdx.json":     {cdx.ComponentTypeApplication, "harbour.test/small"},
		"fairlead_0.1.0_image_linux_arm64.cdx.json": {cdx.ComponentTypeContainer, "fairlead"},
	} {
		var bom cdx.BOM
		if err := cdx.NewBOMDecoder(bytes.NewReader(r.read(t, file)), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
			t.Fatal(err)
		}
		subject := bom.Metadata.Component
		if subject.Type != want.kind || subject.Name != want.name || subject.Version != "v0.1.0" {
			t.Errorf("%s is of %+v", file, subject)
		}
		known := map[string]string{}
		for _, c := range *bom.Components {
			known[c.Name] = c.Version
		}
		if known["std"] != strings.TrimPrefix(runtime.Version(), "go") {
			t.Errorf("%s lists %v", file, known)
		}
		if want.kind == cdx.ComponentTypeContainer && (known[rootsModule] == "" || known["tzdata"] == "") {
			t.Errorf("%s does not list what else is in the image: %v", file, known)
		}
	}
}

// testKrew holds the manifest to what krew takes, and to the archives that it leads to.
func (r release) testKrew(t *testing.T) {
	type file struct {
		URI, SHA256, Bin string
		Selector         map[string]map[string]string
	}
	var plugin struct {
		APIVersion, Kind string
		Metadata         map[string]string
		Spec             struct {
			Version, Homepage, ShortDescription, Description string
			Platforms                                        []file
		}
	}
	if err := yaml.UnmarshalStrict(r.read(t, "krew.yaml"), &plugin); err != nil {
		t.Fatal(err)
	}
	if plugin.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || plugin.Kind != "Plugin" || plugin.Metadata["name"] != "fairlead" || plugin.Spec.Version != "v0.1.0" {
		t.Errorf("%+v", plugin)
	}
	// Krew lists it in a line.
	if short := plugin.Spec.ShortDescription; short == "" || len(short) > 50 || strings.ContainsAny(short, "\r\n") {
		t.Errorf("the short description is %q", short)
	}
	if !strings.HasPrefix(plugin.Spec.Homepage, "https://") || plugin.Spec.Description == "" {
		t.Errorf("%+v", plugin.Spec)
	}
	var want []file
	for _, p := range allPlatforms {
		f := file{Bin: "fairlead", Selector: map[string]map[string]string{"matchLabels": {"os": p.os, "arch": p.arch}}}
		archive := "fairlead_0.1.0_" + p.os + "_" + p.arch + ".tar.gz"
		if p.os == "windows" {
			f.Bin, archive = "fairlead.exe", "fairlead_0.1.0_"+p.os+"_"+p.arch+".zip"
		}
		sum, err := sha256File(r.path(archive))
		if err != nil {
			t.Fatal(err)
		}
		f.URI, f.SHA256 = "https://downloads.test/v0.1.0/"+archive, sum
		want = append(want, f)
	}
	if diff := cmp.Diff(want, plugin.Spec.Platforms); diff != "" {
		t.Error(diff)
	}
}

func TestComponentsAreTheModulesOfABinary(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	_, libraries, err := release{version: "v0.1.0"}.components(platform{"linux", "amd64"}, self)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range libraries {
		if c.Name == "helm.sh/helm/v4" {
			if c.PackageURL != "pkg:golang/helm.sh/helm/v4@"+c.Version || c.Hashes == nil || len((*c.Hashes)[0].Value) != 64 {
				t.Errorf("%+v", c)
			}
			return
		}
	}
	t.Errorf("helm is not among %v", libraries)
}
