package input

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// plain turns a value into terms through its JSON.
func plain(v any) (ast.Value, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return valueOfJSON(text)
}

// valueOfJSON turns JSON into terms.
func valueOfJSON(text []byte) (ast.Value, error) {
	v, err := v1alpha1.DecodeJSON(text)
	if err != nil {
		return nil, err
	}
	return termsOf(v)
}

// termsOf turns decoded JSON into terms.
func termsOf(v any) (ast.Value, error) {
	if err := checkNumbers(v); err != nil {
		return nil, err
	}
	return ast.InterfaceToValue(v)
}

// maxDigits of a number. OPA keeps a number as the text that it was written as, and calculates with all its digits.
const maxDigits = 1000

// checkNumbers refuses numbers of many digits, also when they are written with an exponent.
func checkNumbers(v any) error {
	switch v := v.(type) {
	case map[string]any:
		for _, one := range v {
			if err := checkNumbers(one); err != nil {
				return err
			}
		}
	case []any:
		for _, one := range v {
			if err := checkNumbers(one); err != nil {
				return err
			}
		}
	case json.Number:
		value, err := strconv.ParseFloat(string(v), 64)
		mantissa, _, _ := strings.Cut(strings.ToLower(string(v)), "e")
		if err != nil || len(v) > maxDigits || value == 0 && strings.Trim(mantissa, "-0.") != "" {
			return fmt.Errorf("a number with more than %d digits: %s", maxDigits, parse.Cut(string(v), parse.MaxRule))
		}
	}
	return nil
}
