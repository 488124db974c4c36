package source

import (
	"fmt"
	"maps"
	"slices"
	"text/template"
)

// Functions of templates that ask a server, and those that give another result each time.
var (
	asking = []string{"lookup", "getHostByName"}
	moving = []string{"now", "ago", "date", "date_in_zone", "dateInZone", "htmlDate", "htmlDateInZone", "toDate",
		"mustToDate", "unixEpoch",
		"randAlphaNum", "randAlpha", "randAscii", "randNumeric", "randBytes", "randInt", "shuffle", "uuidv4", "bcrypt",
		"htpasswd", "encryptAES",
		"genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert",
		"genSignedCertWithKey"}
)

// functions replace those of Helm that give something else for the same files, or without end.
func functions() template.FuncMap {
	out := template.FuncMap{}
	for _, name := range asking {
		out[name] = func(...any) (any, error) {
			return nil, fmt.Errorf("%s is not there: charts are rendered without a cluster and without a network; "+
				"put what it would give into values", name)
		}
	}
	for _, name := range moving {
		out[name] = func(...any) (any, error) {
			return nil, fmt.Errorf("%s is not there: it would give something else each time, and with it a new "+
				"version; put a fixed value into values", name)
		}
	}
	out["keys"] = func(dicts ...map[string]any) []string { // Helm's are in another order each time
		all := []string{}
		for _, d := range dicts {
			all = append(all, slices.Sorted(maps.Keys(d))...)
		}
		return all
	}
	out["values"] = func(dict map[string]any) []any {
		all := []any{}
		for _, key := range slices.Sorted(maps.Keys(dict)) {
			all = append(all, dict[key])
		}
		return all
	}
	return out
}
