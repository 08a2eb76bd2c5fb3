package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

const rootsModule = "golang.org/x/crypto/x509roots/fallback"

// writeSBOMs lists what each binary, and each image, is made of, as Go recorded it in the binary.
func (r release) writeSBOMs(built programs, image writtenImage) error {
	for _, p := range r.platforms {
		program, libraries, err := r.components(p, built.binaries[p])
		if err != nil {
			return err
		}
		if err := r.writeSBOM(r.name(p.os, p.arch)+".cdx.json", program, libraries); err != nil {
			return err
		}
		digest, ok := image.platforms[p]
		if !ok {
			continue
		}
		container := component(cdx.ComponentTypeContainer, "fairlead", string(r.version),
			fmt.Sprintf("pkg:oci/fairlead@%s?arch=%s&tag=%s", strings.ReplaceAll(digest, ":", "%3A"), p.arch, r.version.number()))
		container.Hashes = sha256Hash(strings.TrimPrefix(digest, "sha256:"))
		content := append([]cdx.Component{program, rootCertificates(), timeZones(libraries)}, libraries...)
		if err := r.writeSBOM(r.name("image", p.os, p.arch)+".cdx.json", container, content); err != nil {
			return err
		}
	}
	return nil
}

func (r release) writeSBOM(name string, subject cdx.Component, content []cdx.Component) error {
	bom := cdx.NewBOM()
	// The same subject has the same number; a random one would make every build another release.
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, []byte(name+" "+subject.PackageURL+" "+(*subject.Hashes)[0].Value)).URN()
	bom.Metadata = &cdx.Metadata{Timestamp: r.source.time.Format(time.RFC3339), Component: &subject}
	bom.Components = &content
	var references []string
	for _, c := range content {
		references = append(references, c.BOMRef)
	}
	bom.Dependencies = &[]cdx.Dependency{{Ref: subject.BOMRef, Dependencies: &references}}
	file, err := os.Create(r.path(name))
	if err != nil {
		return err
	}
	defer file.Close()
	// Readers of the newest version of the format are rare still.
	if err := cdx.NewBOMEncoder(file, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return file.Close()
}

// components are a binary, and the modules that are linked into it.
func (r release) components(p platform, binary string) (cdx.Component, []cdx.Component, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return cdx.Component{}, nil, fmt.Errorf("read what fairlead for %s is made of: %w", p, err)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return cdx.Component{}, nil, err
	}
	sum := sha256.Sum256(content)
	program := module(cdx.ComponentTypeApplication, info.Main.Path, string(r.version), "")
	program.PackageURL += "?goos=" + p.os + "&goarch=" + p.arch
	program.BOMRef = program.PackageURL
	program.Hashes = sha256Hash(hex.EncodeToString(sum[:]))
	libraries := []cdx.Component{module(cdx.ComponentTypeLibrary, "std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, dependency := range info.Deps {
		if dependency.Replace != nil {
			dependency = dependency.Replace
		}
		libraries = append(libraries, module(cdx.ComponentTypeLibrary, dependency.Path, dependency.Version, dependency.Sum))
	}
	return program, libraries, nil
}

// module is a module of Go. Its sum is the one of go.sum: the SHA-256 of a list of its files, in base64.
func module(kind cdx.ComponentType, name, version, sum string) cdx.Component {
	c := component(kind, name, version, "pkg:golang/"+name+"@"+strings.ReplaceAll(version, "+", "%2B"))
	if decoded, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:")); err == nil && len(decoded) == sha256.Size {
		c.Hashes = sha256Hash(hex.EncodeToString(decoded))
	}
	return c
}

func rootCertificates() cdx.Component {
	version := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range info.Deps {
			if dependency.Path == rootsModule {
				version = dependency.Version
			}
		}
	}
	c := module(cdx.ComponentTypeData, rootsModule, version, "")
	c.Description = "CA certificates that Mozilla trusts"
	return c
}

// timeZones come with the Go that the binary is built with.
func timeZones(libraries []cdx.Component) cdx.Component {
	c := component(cdx.ComponentTypeData, "tzdata", libraries[0].Version, "pkg:generic/go-zoneinfo@"+libraries[0].Version)
	c.Description = "time zones of Go's lib/time/zoneinfo.zip"
	return c
}

func component(kind cdx.ComponentType, name, version, url string) cdx.Component {
	return cdx.Component{BOMRef: url, Type: kind, Name: name, Version: version, PackageURL: url}
}

func sha256Hash(value string) *[]cdx.Hash {
	return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: value}}
}
