package passage

// Object names one object in one cluster; it is comparable, so it serves as a map key.
type Object struct {
	// Cluster is the member cluster that holds the object, empty for the
	// cluster that Fairlead itself looks at.
	Cluster    string `json:"cluster,omitempty"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// String names the object as a person would: "Deployment shop/cart in eu-west".
func (o Object) String() string {
	text := o.Kind + " "
	if o.Namespace != "" {
		text += o.Namespace + "/"
	}
	text += o.Name
	if o.Cluster != "" {
		text += " in " + o.Cluster
	}
	return text
}
