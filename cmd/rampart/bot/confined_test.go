package bot

import (
	"os"
	"testing"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
)

// TestMain is a process that works on what others wrote, too.
func TestMain(m *testing.M) {
	if served, err := cmdutil.ServeConfined(os.Args); served {
		if err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}
