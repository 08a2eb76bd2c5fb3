package meshservice

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/fairlead/fairlead/internal/meshservice/generate/desired"
)

// validateRanges rejects ranges without usable addresses, and ranges that overlap.
func validateRanges(ranges desired.Ranges) error {
	err := errors.Join(validateRange("--mesh-service-cidr", ranges.Services), validateRange("--mesh-tag-cidr", ranges.Tags))
	if err == nil && ranges.Services.Overlaps(ranges.Tags) {
		err = fmt.Errorf("--mesh-service-cidr %s and --mesh-tag-cidr %s overlap: give two ranges that share no address",
			ranges.Services, ranges.Tags)
	}
	return err
}

func validateRange(flag string, r netip.Prefix) error {
	switch {
	case !r.IsValid() || !r.Addr().Is4():
		return fmt.Errorf("%s %s is not an IPv4 range: give one such as 241.0.0.0/8", flag, r)
	case r.Masked() != r:
		return fmt.Errorf("%s %s does not begin at its first address: write %s", flag, r, r.Masked())
	}
	if unfit := reservedOverlaps(r); len(unfit) > 0 {
		return fmt.Errorf("%s %s overlaps the reserved range %s: give one such as 241.0.0.0/8", flag, r, strings.Join(unfit, ", "))
	}
	return nil
}

// reservedOverlaps are the reserved ranges that a range overlaps.
func reservedOverlaps(r netip.Prefix) []string {
	var unfit []string
	for _, reserved := range []string{"0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/4"} {
		if r.Overlaps(netip.MustParsePrefix(reserved)) {
			unfit = append(unfit, reserved)
		}
	}
	return unfit
}
