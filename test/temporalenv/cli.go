package temporalenv

import (
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/rampart-gitops/rampart/internal/testneed"
)

// cliServer is a development server of the temporal CLI.
type cliServer struct {
	address string
	cmd     *exec.Cmd
	said    *bytes.Buffer
}

// startCLI starts one with the settings that settings gives to a server in this process, as far as another release has
// them.
func startCLI(opts Options) (*cliServer, error) {
	port, err := testneed.FreePort()
	if err != nil {
		return nil, err
	}
	args := []string{"server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", strconv.Itoa(port),
		"--log-level", "error"}
	for _, setting := range []string{ // names as that release writes them: it tells capitals apart
		"matching.wv.VersionDrainageStatusVisibilityGracePeriod=" + quoted(opts.Drainage),
		"matching.wv.VersionDrainageStatusRefreshInterval=" + quoted(opts.Drainage),
		"matching.PollerHistoryTTL=" + quoted(opts.PollerTTL),
		"matching.longPollExpirationInterval=" + quoted(opts.LongPoll),
		"matching.TaskQueueInfoByBuildIdTTL=" + quoted(50*time.Millisecond),
		"frontend.namespaceRPS.visibility=" + strconv.Itoa(opts.VisibilityRPS),
		"system.enableDeploymentVersions=true",
		"matching.numTaskqueueReadPartitions=1",
		"matching.numTaskqueueWritePartitions=1",
	} {
		args = append(args, "--dynamic-config-value", setting)
	}
	c := &cliServer{address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), said: new(bytes.Buffer)}
	c.cmd = exec.Command(opts.CLI, args...)
	c.cmd.Stdout, c.cmd.Stderr = c.said, c.said
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", opts.CLI, err)
	}
	return c, nil
}

// quoted is a duration as a value in JSON, which the CLI takes.
func quoted(d time.Duration) string { return strconv.Quote(d.String()) }

func (c *cliServer) stop() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop temporal server: %w: %s", err, c.said)
	}
	_ = c.cmd.Wait() // by a signal
	return nil
}
