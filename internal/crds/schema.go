package crds

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SchemaState is how the schema of a CRD in a cluster relates to that of this binary.
type SchemaState string

const (
	SchemaSame  SchemaState = "Same"
	SchemaOlder SchemaState = "Older"
	SchemaNewer SchemaState = "Newer"
	// SchemaNotInstalled is normal for the CRDs of passages that do not run.
	SchemaNotInstalled SchemaState = "NotInstalled"
	// SchemaNotOwned is a CRD that another owner has installed.
	SchemaNotOwned SchemaState = "NotOwned"
)

// Schema compares the schema version of a CRD in a cluster with that of this binary.
type Schema struct {
	Name  string      `json:"name"`
	State SchemaState `json:"state"`
	// Client is the version of this binary, and Cluster that of the cluster, if it has one.
	Client  int  `json:"client"`
	Cluster *int `json:"cluster,omitempty"`
}

// CompareSchemas compares Fairlead's CRDs with those of a cluster, of which it needs their metadata.
func CompareSchemas(live []metav1.PartialObjectMetadata) ([]Schema, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	annotations := map[string]map[string]string{}
	for _, crd := range live {
		annotations[crd.Name] = crd.Annotations
		if crd.Annotations == nil {
			annotations[crd.Name] = map[string]string{}
		}
	}
	var schemas []Schema
	for _, crd := range all {
		mine, _ := schemaVersion(crd)
		schemas = append(schemas, compareSchema(crd.Name, mine, annotations[crd.Name]))
	}
	return schemas, nil
}

// compareSchema is given no annotations if there is no CRD.
func compareSchema(name string, mine int, annotations map[string]string) Schema {
	schema := Schema{Name: name, Client: mine, State: SchemaNotInstalled}
	if annotations == nil {
		return schema
	}
	have, marked := markedVersion(annotations)
	if !marked {
		schema.State = SchemaNotOwned
		return schema
	}
	schema.Cluster = &have
	switch {
	case have > mine:
		schema.State = SchemaNewer
	case have < mine:
		schema.State = SchemaOlder
	default:
		schema.State = SchemaSame
	}
	return schema
}

// markedVersion reads the annotation. An annotation that is no number was not written by Fairlead. Version 0 is a CRD that was
// taken over, and still has the schema of its former owner.
func markedVersion(annotations map[string]string) (int, bool) {
	version, err := strconv.Atoi(annotations[SchemaVersionAnnotation])
	return version, err == nil && version >= 0
}
