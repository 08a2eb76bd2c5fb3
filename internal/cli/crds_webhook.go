package cli

import (
	"bytes"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/fairlead/fairlead/internal/cli/console"
	"github.com/fairlead/fairlead/internal/crds"
)

const versionsHelp = `A CRD whose versions differ needs the operator's webhook, which converts between them. An operator that
installs the CRDs itself sees to that. Without one, and without --webhook-service, such a CRD serves only
the version that it stores.`

// crdWebhook says where the operator's webhook is, for those who do not let the operator write CRDs.
type crdWebhook struct{ service, authority string }

func (w *crdWebhook) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.service, "webhook-service", "",
		"Service NAMESPACE/NAME:PORT of the operator's webhook, which converts between versions")
	cmd.Flags().StringVar(&w.authority, "webhook-ca-file", "", "file with the authority of its certificate, in PEM")
}

// read is nil when nothing was said.
func (w *crdWebhook) read() (*crds.Webhook, error) {
	service, err := crds.ParseService(w.service)
	if err != nil {
		return nil, console.UsageErrorf("--webhook-service: %v", err)
	}
	if (service == nil) != (w.authority == "") {
		return nil, console.UsageErrorf("--webhook-service and --webhook-ca-file go together: where the webhook is, and why to trust it")
	}
	if service == nil {
		return nil, nil
	}
	authority, err := os.ReadFile(w.authority)
	if err != nil {
		return nil, fmt.Errorf("read the authority of the webhook: %w", err)
	}
	if !bytes.Contains(authority, []byte("BEGIN CERTIFICATE")) {
		return nil, console.UsageErrorf("--webhook-ca-file: there is no certificate in PEM in %s", w.authority)
	}
	return &crds.Webhook{Service: service, Trust: crds.StaticTrust(authority)}, nil
}
