package rollout

// Explanation is why policy says what it says of an action, rule by rule.
type Explanation struct {
	// Action is the action's ID; "" where it is about the spec.
	Action string `json:"action,omitempty"`
	// Kind of the action.
	Kind ActionKind `json:"kind,omitempty"`
	// PolicyDigest names the policies and their data.
	PolicyDigest string  `json:"policyDigest"`
	Verdict      Verdict `json:"verdict"`
	// Rules sorted by what became of them, those that decided first; then package and name.
	Rules []RuleExplanation `json:"rules"`
	// Others are findings of the verdict that no rule is behind, such as policies that do not compile.
	Others []Finding `json:"others,omitempty"`
	// Incomplete says why something is missing; "" where nothing is.
	Incomplete string `json:"incomplete,omitempty"`
}

// RuleOutcome is what became of a rule.
type RuleOutcome string

// What becomes of a rule.
const (
	// RuleFailed could not be evaluated, which holds.
	RuleFailed RuleOutcome = "Failed"
	// RuleFired has findings.
	RuleFired RuleOutcome = "Fired"
	// RuleUnheard has findings that do not count: its rule set could not be evaluated as a whole.
	RuleUnheard RuleOutcome = "Unheard"
	// RuleWaived has findings, all of them waived.
	RuleWaived RuleOutcome = "Waived"
	// RulePassed looked at what changes with time, such as counts, facts, routing and the clock, and found nothing.
	RulePassed RuleOutcome = "Passed"
	// RuleIdle is about other actions, environments or specs, or is not configured.
	RuleIdle RuleOutcome = "Idle"
)

// Rank orders outcomes: what decides comes first.
func (o RuleOutcome) Rank() int {
	for i, known := range []RuleOutcome{RuleFailed, RuleFired, RuleUnheard, RuleWaived, RulePassed} {
		if o == known {
			return i
		}
	}
	return 5
}

// RuleExplanation is all clauses of one name, such as rollout.canary.
type RuleExplanation struct {
	Package string `json:"package"`
	Rule    string `json:"rule"`
	// Floor says that it is the bot's own configuration that demands it.
	Floor   bool        `json:"floor,omitempty"`
	Outcome RuleOutcome `json:"outcome"`
	// Clauses sorted by what became of them, and where they are.
	Clauses []ClauseExplanation `json:"clauses"`
}

// ClauseExplanation is one place in a policy that can have findings.
type ClauseExplanation struct {
	// Set that it adds to, such as deny.
	Set string `json:"set"`
	// Location is file:line.
	Location string      `json:"location"`
	Outcome  RuleOutcome `json:"outcome"`
	Findings []Finding   `json:"findings,omitempty"`
	// True are the expressions of a clause that fired, with what they saw.
	True []Expression `json:"true,omitempty"`
	// False is the first expression that was not true, where the clause got furthest.
	False *Expression `json:"false,omitempty"`
	// Ahead is what of the input a clause that passed goes by beside that.
	Ahead []NamedValue `json:"ahead,omitempty"`
}

// Expression is a line of a policy and what it saw.
type Expression struct {
	// Location is file:line.
	Location string `json:"location"`
	// Text as it is written, on one line.
	Text   string       `json:"text"`
	Values []NamedValue `json:"values,omitempty"`
	// Because is the expression within a helper that was not true.
	Because *Expression `json:"because,omitempty"`
	// Ways is how often it was tried, as for each of several windows.
	Ways int `json:"ways,omitempty"`
}

// NamedValue is a value that an expression saw. Long ones are cut; values of environment variables are hidden.
type NamedValue struct {
	Name string `json:"name"`
	// Value as Rego writes it; "undefined" where there is none.
	Value string `json:"value"`
}
