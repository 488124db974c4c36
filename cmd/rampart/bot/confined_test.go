package bot

import (
	"testing"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

// TestMain is a process that works on what others wrote, too.
func TestMain(m *testing.M) { testneed.Main(m, cmdutil.Confined()) }
