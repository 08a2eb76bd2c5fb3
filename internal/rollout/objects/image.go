package objects

import (
	"fmt"
	"strings"
)

// SiblingImage is the image of balancerd or the console for one of environmentd: of the same registry and tag.
func SiblingImage(environmentd, app string) (string, error) {
	named, _, digested := strings.Cut(environmentd, "@")
	slash := strings.LastIndex(named, "/")
	directory, repository := named[:slash+1], named[slash+1:]
	repository, tag, tagged := strings.Cut(repository, ":")
	if digested && !tagged {
		return "", fmt.Errorf("spec.environmentdImageRef %s has a digest and no tag, and the image of %s is the one with the same tag: "+
			"write it as NAME:TAG@DIGEST", environmentd, app)
	}
	sibling := app
	if strings.Contains(repository, AppEnvironmentd) {
		sibling = strings.Replace(repository, AppEnvironmentd, app, 1)
	}
	if tagged {
		sibling += ":" + tag
	}
	return directory + sibling, nil
}
