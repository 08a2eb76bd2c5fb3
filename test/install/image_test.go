package install_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
)

// image is one that a node has pulled, for its own platform.
type image struct {
	reference string
	config    ocispec.Image
	layers    [][]byte // as tar
}

// pull fetches an image by its reference. Everything that is fetched by its digest is compared with it.
func (r *registry) pull(ctx context.Context, reference string) (*image, error) {
	repository, err := remote.NewRepository(reference)
	if err != nil {
		return nil, err
	}
	repository.Client = r.client()
	descriptor, err := repository.Resolve(ctx, repository.Reference.Reference)
	if err != nil {
		return nil, fmt.Errorf("pull %s: %w", reference, err)
	}
	index, err := fetch[ocispec.Index](ctx, repository, descriptor)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(index.Manifests, func(d ocispec.Descriptor) bool {
		return d.Platform != nil && d.Platform.OS == "linux" && d.Platform.Architecture == runtime.GOARCH
	})
	if at < 0 {
		return nil, fmt.Errorf("%s has no image for linux/%s", reference, runtime.GOARCH)
	}
	manifest, err := fetch[ocispec.Manifest](ctx, repository, index.Manifests[at])
	if err != nil {
		return nil, err
	}
	pulled := &image{reference: reference}
	if pulled.config, err = fetch[ocispec.Image](ctx, repository, manifest.Config); err != nil {
		return nil, err
	}
	for _, layer := range manifest.Layers {
		packed, err := content.FetchAll(ctx, repository, layer)
		if err != nil {
			return nil, fmt.Errorf("pull layer %s of %s: %w", layer.Digest, reference, err)
		}
		unpacked, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, err
		}
		files, err := io.ReadAll(unpacked)
		if err != nil {
			return nil, err
		}
		pulled.layers = append(pulled.layers, files)
	}
	return pulled, nil
}

func fetch[T any](ctx context.Context, from content.Fetcher, descriptor ocispec.Descriptor) (T, error) {
	var decoded T
	raw, err := content.FetchAll(ctx, from, descriptor)
	if err != nil {
		return decoded, fmt.Errorf("pull %s: %w", descriptor.Digest, err)
	}
	return decoded, json.Unmarshal(raw, &decoded)
}

// extract writes the files of all layers into a directory, for their owners if this is root.
func (i *image) extract(into string) error {
	for _, layer := range i.layers {
		files := tar.NewReader(bytes.NewReader(layer))
		for {
			header, err := files.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			if err := extractFile(into, header, files); err != nil {
				return fmt.Errorf("extract %s: %w", header.Name, err)
			}
		}
	}
	return nil
}

func extractFile(into string, header *tar.Header, body io.Reader) error {
	if !filepath.IsLocal(header.Name) {
		return errors.New("it is outside of the image")
	}
	path, mode := filepath.Join(into, header.Name), header.FileInfo().Mode()
	switch header.Typeflag {
	case tar.TypeDir:
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	case tar.TypeReg:
		raw, err := io.ReadAll(body)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			return err
		}
	default:
		return fmt.Errorf("its type is %q", header.Typeflag)
	}
	if isRoot() {
		if err := os.Lchown(path, header.Uid, header.Gid); err != nil {
			return err
		}
	}
	return os.Chmod(path, mode)
}

// makeReadOnly takes away every right to write, as on a file system that is mounted read-only. Root does not notice.
func makeReadOnly(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return os.Chmod(path, info.Mode()&^0o222)
	})
}
