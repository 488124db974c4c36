package rollout

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumbersAsPeopleWriteThem(t *testing.T) {
	for want, got := range map[string]string{
		"5%":                       Percent(5),
		"12.5%":                    Percent(12.5),
		"0.00001%":                 Percent(0.00001),
		"100% (3 of 3)":            RateOf(3, 3),
		"0% (0 of 3)":              RateOf(0, 3),
		"0% (0 of 0)":              RateOf(0, 0),
		"33% (1 of 3)":             RateOf(1, 3),
		"0.4% (12 of 2 981)":       RateOf(12, 2981),
		"99.9% (9 999 of 10 000)":  RateOf(9999, 10000),
		"99.5% (199 of 200)":       RateOf(199, 200),
		"99% (99 of 100)":          RateOf(99, 100),
		"5.5% (11 of 200)":         RateOf(11, 200),
		"10% (1 of 10)":            RateOf(1, 10),
		"0.0001% (1 of 1 000 000)": RateOf(1, 1000000),
		"-1 234 567":               Grouped(-1234567),
		"999":                      Grouped(999),
	} {
		require.Equal(t, want, got)
	}
}
