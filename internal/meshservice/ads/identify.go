package ads

import (
	"context"

	"github.com/fairlead/fairlead/internal/meshservice/model"
)

// Identifier checks that a stream is of the proxy that it claims to be of. Its errors have the code Unauthenticated or
// PermissionDenied if the claim is wrong, and another one if it could not be checked.
type Identifier interface {
	Identify(ctx context.Context, claimed model.ProxyID) error
}

// Insecure believes everybody. It is for tests and trials on one machine.
type Insecure struct{}

// Identify believes it.
func (Insecure) Identify(context.Context, model.ProxyID) error { return nil }
