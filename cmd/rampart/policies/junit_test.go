package policies

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// What others wrote reaches the file as XML can hold it, and is read back as it was.
func TestJUnit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.xml")
	require.NoError(t, writeJUnit(file, testOutcome{Suites: []testSuite{
		{Environments: []string{"dev", "prod"}, TestReport: policy.TestReport{Results: []policy.TestResult{
			{Package: "a", Name: "test_x", Location: "p:1.rego:3", Status: policy.TestFailed, Message: "<\x1b[31mred & \"]]>", Duration: 1500 * time.Millisecond},
			{Package: "b", Name: "test_y", Location: "b.rego:1", Status: policy.TestPassed, Duration: time.Millisecond},
		}}},
		{Environments: []string{"test"}, TestReport: policy.TestReport{Problems: []parse.Problem{{Path: "x.rego", Line: 2, Message: "broken"}}}},
	}}))
	body, err := os.ReadFile(file)
	require.NoError(t, err)
	var got junitSuites
	require.NoError(t, xml.Unmarshal(body, &got))
	require.Equal(t, []int{3, 1, 1, 0}, []int{got.Tests, got.Failures, got.Errors, got.Skipped})
	require.Equal(t, "1.501000", got.Time)
	require.Len(t, got.Suites, 3)
	require.Equal(t, "dev,prod: a", got.Suites[0].Name)
	c := got.Suites[0].Cases[0]
	require.Equal(t, []string{"p:1.rego", "3", "p:1.rego:3: <\\u001b[31mred & \"]]>"}, []string{c.File, c.Line, c.Failure.Message})
	require.Equal(t, "test: policies", got.Suites[2].Name)
	require.Equal(t, "x.rego:2: broken", got.Suites[2].Cases[0].Error.Message)
	left, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*"))
	require.NoError(t, err)
	require.Equal(t, []string{file}, left)
	require.Error(t, writeJUnit(filepath.Join(file, "below"), testOutcome{}))
}
