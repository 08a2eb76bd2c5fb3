package callers

import "encoding/json"

// Bootstrap is what a client without a proxy needs to know in order to find its control plane.
type Bootstrap struct {
	// Server is the address of the control plane.
	Server string
	// Node is the id of the client: mesh.name.namespace, or mesh.name in universal.
	Node string
	// Authority, Certificate and Key are files in PEM; without them it connects in the clear.
	Authority, Certificate, Key string
}

// JSON is the file that gRPC reads, in every language.
func (b Bootstrap) JSON() []byte {
	type channel struct {
		Type   string            `json:"type"`
		Config map[string]string `json:"config,omitempty"`
	}
	type server struct {
		URI      string    `json:"server_uri"`
		Channels []channel `json:"channel_creds"`
		Features []string  `json:"server_features"`
	}
	creds := channel{Type: "insecure"}
	if b.Authority != "" {
		creds = channel{"tls", map[string]string{"ca_certificate_file": b.Authority}}
		if b.Certificate != "" {
			creds.Config["certificate_file"], creds.Config["private_key_file"] = b.Certificate, b.Key
		}
	}
	text, err := json.Marshal(map[string]any{
		"xds_servers": []server{{b.Server, []channel{creds}, []string{"xds_v3"}}},
		// Node insists on a locality.
		"node": map[string]any{"id": b.Node, "locality": map[string]string{}},
	})
	if err != nil {
		panic(err) // it is made of strings
	}
	return text
}
