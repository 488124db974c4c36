package v1alpha1

import (
	"reflect"
	"time"
)

// The defaults of fields that are left out.
const (
	DefaultProgressDeadlineSeconds = 600

	DefaultScaledownDelay = time.Hour
	DefaultDeleteDelay    = 24 * time.Hour
	DefaultRollbackWindow = time.Hour
	DefaultGateTimeout    = time.Hour

	DefaultAnalysisWindow = 10 * time.Minute
	DefaultMinSamples     = 50
	DefaultMaxWait        = 2 * time.Hour
	DefaultAlpha          = 0.01
	DefaultTolerance      = 0.1
	DefaultMetricMaxAge   = 2 * time.Minute
)

// DefaultConfig is what a repository without a rampart.yaml has: one environment, specs anywhere, output in deploy/.
func DefaultConfig() Config {
	c := Config{APIVersion: RampartAPIVersion, Kind: KindConfig, Spec: ConfigSpec{Environments: []Environment{{
		Name:   "default",
		Specs:  []string{"**/*.{yaml,yml,json}"},
		Output: Output{Path: "deploy"},
	}}}}
	presetEnvironment(&c.Spec.Environments[0])
	fillConfig(&c)
	return c
}

// presetOf gives the defaults of a type, which decoding puts in before it reads what the user wrote. A digest leaves
// out what is still as it was put in. So a default has one place.
func presetOf(t reflect.Type) func(reflect.Value) {
	switch t {
	case reflect.TypeFor[WorkerDeploymentSpec]():
		return preset(presetSpec)
	case reflect.TypeFor[RolloutStrategy]():
		return preset(func(r *RolloutStrategy) { presetRollback(&r.Rollback) })
	case reflect.TypeFor[RollbackPolicy]():
		return preset(presetRollback)
	case reflect.TypeFor[Gate]():
		return preset(func(g *Gate) { g.Timeout = Duration{DefaultGateTimeout} })
	case reflect.TypeFor[Analysis]():
		return preset(presetAnalysis)
	case reflect.TypeFor[Metric]():
		return preset(func(m *Metric) { m.MaxAge = Duration{DefaultMetricMaxAge} })
	case reflect.TypeFor[SunsetStrategy]():
		return preset(presetSunset)
	case reflect.TypeFor[WorkerResourceTemplateSpec]():
		return preset(func(s *WorkerResourceTemplateSpec) { s.ApplyTo = NewVersions })
	case reflect.TypeFor[Environment]():
		return preset(presetEnvironment)
	case reflect.TypeFor[Approval]():
		return preset(presetApproval)
	case reflect.TypeFor[SimulationSpec]():
		return preset(presetSimulation)
	case reflect.TypeFor[SimulatedTraffic]():
		return preset(presetTraffic)
	case reflect.TypeFor[SimulatedApprovals]():
		return preset(presetApprovals)
	case reflect.TypeFor[SimulatedGate]():
		return preset(presetSimulatedGate)
	case reflect.TypeFor[SimulatedEvacuation]():
		return preset(presetSimulatedEvacuation)
	case reflect.TypeFor[Hold]():
		// Who adds a hold by hand is a person.
		return preset(func(h *Hold) { h.Kind = HoldManual })
	}
	return nil
}

func preset[T any](fill func(*T)) func(reflect.Value) {
	return func(v reflect.Value) { fill(v.Addr().Interface().(*T)) }
}

func presetSpec(s *WorkerDeploymentSpec) {
	deadline := int32(DefaultProgressDeadlineSeconds)
	s.ProgressDeadlineSeconds = &deadline
	presetRollback(&s.Rollout.Rollback)
	presetSunset(&s.Sunset)
}

func presetRollback(r *RollbackPolicy) { r.Window = Duration{DefaultRollbackWindow} }

func presetSunset(s *SunsetStrategy) {
	s.ScaledownDelay, s.DeleteDelay = Duration{DefaultScaledownDelay}, Duration{DefaultDeleteDelay}
}

func presetAnalysis(a *Analysis) {
	a.Window, a.MaxWait = Duration{DefaultAnalysisWindow}, Duration{DefaultMaxWait}
	a.MinSamples, a.OnTooFewSamples, a.Alpha, a.Tolerance = DefaultMinSamples, SamplesHold, DefaultAlpha,
		DefaultTolerance
}

func presetApproval(a *Approval) { a.Mode, a.Scope = Direct, ScopeStep }

func presetEnvironment(e *Environment) {
	presetApproval(&e.Approval)
	e.CD.Tool, e.CD.RampHealth, e.WorkerEnv, e.Status = Both, RampProgressing, EnvCurrent, StatusOn
}

// fillWorkerDeployment puts in the defaults that depend on more than their own object: a failed gate before any traffic
// holds, a later one rolls back. Of two ways to write the same it keeps one.
func fillWorkerDeployment(w *WorkerDeployment) {
	fill := func(g *Gate, answer OnGateFailure) {
		if g != nil && g.OnFailure == "" {
			g.OnFailure = answer
		}
	}
	if ref := &w.Spec.WorkerOptions.ConnectionRef; ref.Kind == KindConnection {
		ref.Kind = "" // written or not, it is the same
	}
	fill(w.Spec.Rollout.Gate, GateHold)
	for i := range w.Spec.Rollout.Steps {
		fill(w.Spec.Rollout.Steps[i].Gate, GateRollback)
	}
}

// fillConfig puts in the defaults that follow from an environment's name.
func fillConfig(c *Config) {
	for i := range c.Spec.Environments {
		if e := &c.Spec.Environments[i]; e.ManagerIdentity == "" {
			e.ManagerIdentity = "rampart/" + e.Name
		}
	}
}
