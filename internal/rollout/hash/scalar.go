package hash

import (
	"cmp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fairlead/fairlead/api/materialize/v1alpha2"
)

func literal(value string) node { return node{json: value, text: value} }

func text(s string) node { return node{json: string(appendString(nil, s)), text: cmp.Or(s, `""`)} }

// quantity is written as digits that end in none but significant ones, and a power of ten: 1Ki, 1024 and 1.024k are 1024e0.
func quantity(q resource.Quantity) node {
	written := q.String()
	d := q.AsDec()
	digits, power := d.UnscaledBig().String(), -int(d.Scale())
	if short := strings.TrimRight(digits, "0"); short == "" || short == "-" {
		digits, power = "0", 0
	} else {
		digits, power = short, power+len(digits)-len(short)
	}
	value := digits + "e" + strconv.Itoa(power)
	return node{json: `"` + value + `"`, text: written, empty: digits == "0"}
}

// duration that cannot be parsed is taken literally: the error is reported where the duration is used.
func duration(d v1alpha2.Duration) node {
	n := text(string(d))
	if span, err := d.Parse(); err == nil {
		n.json = `"` + span.String() + `"`
	}
	return n
}

func uuid(s string) node {
	n := text(strings.ToLower(s))
	n.text = s
	n.empty = n.json == `"`+string(v1alpha2.NilUUID)+`"`
	return n
}
