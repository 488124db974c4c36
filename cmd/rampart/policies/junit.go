package policies

import (
	"encoding/xml"
	"strconv"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/internal/atomicfile"
	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/policy"
)

// The elements of JUnit XML as Jenkins, GitLab, Gitea and GitHub's actions read it. Times are in seconds.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
		took     time.Duration
	}
	junitCase struct {
		ClassName string        `xml:"classname,attr"`
		Name      string        `xml:"name,attr"`
		File      string        `xml:"file,attr,omitempty"`
		Line      string        `xml:"line,attr,omitempty"`
		Time      string        `xml:"time,attr"`
		Failure   *junitProblem `xml:"failure"`
		Error     *junitProblem `xml:"error"`
		Skipped   *struct{}     `xml:"skipped"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// junitOf has a suite for each package, and one for each set of policies that cannot be used.
func junitOf(o testOutcome) junitSuites {
	out := junitSuites{}
	for _, s := range o.Suites {
		prefix := ""
		if len(o.Suites) > 1 {
			prefix = strings.Join(s.Environments, ",") + ": "
		}
		var suites []junitSuite
		if len(s.Problems) > 0 {
			broken := junitSuite{Name: prefix + "policies"}
			for _, p := range s.Problems {
				broken.add(junitCase{ClassName: "policies", Name: printable.Text(p.Location()), File: p.Path,
					Line: lineOf(p.Location()), Time: seconds(0),
					Error: &junitProblem{Message: printable.Text(p.Error()), Type: "Problem",
						Text: printable.Text(p.Error())}}, 0)
			}
			suites = append(suites, broken)
		}
		for _, r := range s.Results { // sorted by package
			if n := len(suites); n == 0 || suites[n-1].Name != prefix+r.Package {
				suites = append(suites, junitSuite{Name: prefix + r.Package})
			}
			suites[len(suites)-1].add(junitCaseOf(r), r.Duration)
		}
		out.Suites = append(out.Suites, suites...)
	}
	var took time.Duration
	for _, s := range out.Suites {
		out.Tests, out.Failures, out.Errors, out.Skipped = out.Tests+s.Tests, out.Failures+s.Failures,
			out.Errors+s.Errors, out.Skipped+s.Skipped
		took += s.took
	}
	out.Time = seconds(took)
	return out
}

func (s *junitSuite) add(c junitCase, took time.Duration) {
	s.Cases = append(s.Cases, c)
	s.took += took
	s.Time = seconds(s.took)
	s.Tests++
	switch {
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	case c.Skipped != nil:
		s.Skipped++
	}
}

func junitCaseOf(r policy.TestResult) junitCase {
	file, _ := cutLine(r.Location)
	c := junitCase{ClassName: printable.Text(r.Package), Name: printable.Text(r.Name), File: file,
		Line: lineOf(r.Location), Time: seconds(r.Duration)}
	problem := &junitProblem{Message: printable.Text(r.Location + ": " + r.Message), Type: string(r.Status),
		Text: printable.Text(r.Location + ": " + r.Message)}
	if f := r.Failure; f != nil {
		problem.Message = printable.Text(f.Location + ": " + strings.SplitN(f.Text, "\n", 2)[0])
		problem.Text = printable.Text(r.Location + ": " + r.Message + "\n" + f.Location + ":\n" + f.Text)
	}
	switch r.Status {
	case policy.TestFailed:
		c.Failure = problem
	case policy.TestErrored:
		c.Error = problem
	case policy.TestSkipped:
		c.Skipped = &struct{}{}
	}
	return c
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 6, 64) }

// cutLine gives the parts of file:line; without a colon all of it is the file.
func cutLine(location string) (file, line string) {
	if i := strings.LastIndexByte(location, ':'); i >= 0 {
		return location[:i], location[i+1:]
	}
	return location, ""
}

// lineOf is the line of file:line, "" if there is none.
func lineOf(location string) string {
	_, line := cutLine(location)
	if _, err := strconv.Atoi(line); err != nil {
		return ""
	}
	return line
}

// writeJUnit writes the file as a whole or not at all.
func writeJUnit(name string, o testOutcome) error {
	body, err := xml.MarshalIndent(junitOf(o), "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(name, []byte(xml.Header+string(body)+"\n"), 0o644)
}
