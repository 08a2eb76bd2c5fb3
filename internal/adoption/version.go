package adoption

import (
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/version"
)

// longestAnswer is more than any answer that makes sense.
const longestAnswer = 64 << 10

func versionIn(body io.Reader) (string, error) {
	var info version.Info
	if err := json.NewDecoder(io.LimitReader(body, longestAnswer)).Decode(&info); err != nil {
		return "", fmt.Errorf("read its version: %w", err)
	}
	return info.GitVersion, nil
}
