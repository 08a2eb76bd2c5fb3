package charts

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

func newChart(parsed *chart.Chart, digest string) (*Chart, error) {
	content, err := contentFiles(parsed, "")
	if err != nil {
		return nil, fmt.Errorf("compute the digest of chart %s: %w", parsed.Name(), err)
	}
	return &Chart{Chart: parsed, Digest: digest, Content: digestOfFiles(content)}, nil
}

// contentFiles are what decides what a chart installs. `helm package` writes Chart.yaml anew, unpacks dependencies and may write
// a lock file, which only downloads of dependencies use: none of these may make a difference.
func contentFiles(c *chart.Chart, prefix string) ([]*common.File, error) {
	metadata, err := json.Marshal(c.Metadata)
	if err != nil {
		return nil, err
	}
	files := []*common.File{{Name: prefix + chartutil.ChartfileName, Data: metadata}}
	add := func(more ...*common.File) {
		for _, file := range more {
			files = append(files, &common.File{Name: prefix + file.Name, Data: file.Data})
		}
	}
	for _, file := range c.Raw {
		if file.Name == chartutil.ValuesfileName || file.Name == chartutil.SchemafileName {
			add(file)
		}
	}
	add(c.Templates...)
	add(c.Files...)
	for _, dependency := range c.Dependencies() {
		more, err := contentFiles(dependency, prefix+chartutil.ChartsDir+"/"+dependency.Name()+"/")
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	return files, nil
}

// digestOfFiles depends on the names and contents of files, and not on their times.
func digestOfFiles(files []*common.File) string {
	sum := sha256.New()
	for _, file := range slices.SortedStableFunc(slices.Values(files), func(a, b *common.File) int { return cmp.Compare(a.Name, b.Name) }) {
		// The lengths keep one file from passing for two.
		fmt.Fprintf(sum, "%d %s %d ", len(file.Name), file.Name, len(file.Data))
		sum.Write(file.Data)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}
