package objects

import "testing"

func TestSiblingImage(t *testing.T) {
	cases := map[string]struct{ environmentd, want string }{
		"of a registry":              {"docker.io/materialize/environmentd:v26.1.0", "docker.io/materialize/balancerd:v26.1.0"},
		"of a registry with a port":  {"localhost:5000/environmentd:v1", "localhost:5000/balancerd:v1"},
		"of no registry":             {"environmentd:v1", "balancerd:v1"},
		"without a tag":              {"materialize/environmentd", "materialize/balancerd"},
		"with a name of its own":     {"mirror/mz-environmentd-arm:v1", "mirror/mz-balancerd-arm:v1"},
		"with another name":          {"mirror/database:v1", "mirror/balancerd:v1"},
		"with a tag and a digest":    {"materialize/environmentd:v1@sha256:0123", "materialize/balancerd:v1"},
		"with nothing but a digest":  {"materialize/environmentd@sha256:0123", ""},
		"in a directory of its name": {"environmentd/environmentd:v1", "environmentd/balancerd:v1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := SiblingImage(c.environmentd, AppBalancerd)
			if got != c.want || (err != nil) != (c.want == "") {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}
