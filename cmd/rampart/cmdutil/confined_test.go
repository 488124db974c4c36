package cmdutil

import (
	"os"
	"testing"
)

// TestMain is a process that works on what others wrote, too.
func TestMain(m *testing.M) {
	if served, err := ServeConfined(os.Args); served {
		if err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}
