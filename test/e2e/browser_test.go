package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/test/giteatest"
)

// screen is as much of a page as people see at once.
const screenWidth, screenHeight = 1280, 1024

// browser is a tab of a Chromium.
func browser(t *testing.T) context.Context {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		testneed.Missing(t, "chromium is needed and not there")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()))
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, stop = context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	return ctx
}

// page is what a script finds out about a pull request's body.
type page struct {
	// Drawn are the texts of the diagrams, and Errors what Gitea says of those that it could not draw.
	Drawn, Errors []string
	// Raw are diagrams that are still text.
	Raw int
	// Heights of the diagrams in pixels.
	Heights []float64
	// Folded are the summaries of what is folded, and Tables how many tables are seen and hidden.
	Folded        []string
	Shown, Hidden int
	// Ask is where what people are told to do ends, in pixels below the body's beginning.
	Ask float64
}

const lookAtBody = `(() => {
	const body = document.querySelector('.timeline-item.comment.first .render-content.markup');
	const texts = (list) => [...list].map((e) => e.textContent.trim().replace(/\s+/g, ' '));
	const frames = [...body.querySelectorAll('.mermaid-block iframe')].map((f) => f.contentDocument?.querySelector('svg')).filter(Boolean);
	const tables = [...body.querySelectorAll('table')];
	const seen = tables.filter((e) => e.checkVisibility());
	const reject = [...body.querySelectorAll('p')].find((e) => e.textContent.startsWith('To reject'));
	return {
		Heights: [...body.querySelectorAll('.mermaid-block iframe')].map((f) => f.getBoundingClientRect().height),
		Drawn: texts(frames), Errors: texts(document.querySelectorAll('.markup-block-error')),
		Raw: body.querySelectorAll('code.language-mermaid').length,
		Folded: texts(body.querySelectorAll('details:not([open]) > summary')), Shown: seen.length, Hidden: tables.length - seen.length,
		Ask: reject.getBoundingClientRect().bottom - body.getBoundingClientRect().top,
	};
})()`

// A pull request as people see it, in a browser on a real Gitea. Each diagram is drawn, the first screen says what is
// asked and how to answer, and the rest is folded, and unfolds.
func TestProposalInABrowser(t *testing.T) {
	testneed.Long(t)
	giteatest.NeedPages(t)
	w, r, _ := reviewed(t, "Step")
	tab := browser(t) // after its turn among the parallel tests has come: its time runs
	w.pushSpec("v2", specText{image: "app:v2"})
	p := w.awaitPull(r, "at 10%")
	diagrams := strings.Count(p.Body, "```mermaid")
	require.Equal(t, 2, diagrams)
	require.NoError(t, chromedp.Do(tab, chromedp.EmulateViewport(screenWidth, screenHeight), chromedp.Navigate(p.HTMLURL)))
	drawn, err := chromedp.Run(tab, chromedp.Poll[bool](fmt.Sprintf(`(%s).Raw === 0 && (%[1]s).Heights.filter((h) => h > 0).length + (%[1]s).Errors.length >= %d`, lookAtBody, diagrams)))
	require.NoError(t, err)
	require.True(t, drawn)
	seen := lookAt(tab, t, "proposal")
	require.Empty(t, seen.Errors)
	require.Len(t, seen.Drawn, diagrams)
	require.Contains(t, seen.Drawn[0], "asked for here")
	require.Contains(t, seen.Drawn[1], "AwaitingApproval by approval.mode")
	require.Equal(t, 1, seen.Shown, "where new workflows go")
	require.Positive(t, seen.Hidden)
	require.Len(t, seen.Folded, 3)
	for _, height := range seen.Heights {
		require.Greater(t, height, 20., "a diagram that people see")
	}
	require.Less(t, seen.Ask, float64(screenHeight), "what is asked, and how to answer, is on one screen")

	_, err = chromedp.Run(tab, chromedp.Evaluate[int](`[...document.querySelectorAll('details')].filter((e) => e.open = true).length`))
	require.NoError(t, err)
	seen = lookAt(tab, t, "unfolded")
	require.Empty(t, seen.Folded)
	require.Zero(t, seen.Hidden)
}

// lookAt gives what is seen of a pull request's body, and keeps a picture of it.
func lookAt(tab context.Context, t *testing.T, name string) page {
	t.Helper()
	seen, err := chromedp.Run(tab, chromedp.Evaluate[page](lookAtBody))
	require.NoError(t, err)
	picture, err := chromedp.Run(tab, chromedp.FullScreenshot(90))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(t.ArtifactDir(), name+".jpeg"), picture, 0o600))
	return seen
}
