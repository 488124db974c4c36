package plan

import (
	"strconv"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// percent turns the server's float32 into the number a person wrote: 0.1, not 0.10000000149.
func percent(p float32) float64 {
	f, err := strconv.ParseFloat(strconv.FormatFloat(float64(p), 'g', -1, 32), 64)
	if err != nil {
		return float64(p)
	}
	return f
}

// text prints a percentage as a person writes it, such as 12.5%.
func text(p float64) string { return rollout.Percent(p) }
