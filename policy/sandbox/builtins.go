package sandbox

import (
	"errors"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"
)

// OPA counts no memory. A query's steps bound what it can use up, except in builtins: one call may make a result as
// long as it likes, such as a string of a million spaces, all numbers up to a billion, a number of a billion digits. So
// calls of builtins that make something are led through a check of what they are given. Before the call, the check
// takes the most that the builtin can make of it from the query's budget.

// Rough sizes in bytes.
const (
	sizeOfTerm   = 64
	sizeOfParsed = 128
)

// maxValueDepth is how deep values may be within values that are given to builtins, or read by them.
const maxValueDepth = 1000

// call is one call of a builtin.
type call struct {
	operands []*ast.Term
	// weight of all operands in bytes, roughly, as a tree: what is shared counts each time.
	weight int64
	// rough is how many numbers there are that are no small integers. OPA tells numbers apart by what is before the
	// point, so that a set of them is searched from end to end.
	rough int64
	// deepest is how deep values are within each other.
	deepest int64
}

// text is an operand's length if it is a string, else 0.
func (c call) text(i int) int64 {
	if i < len(c.operands) {
		if s, ok := c.operands[i].Value.(ast.String); ok {
			return int64(len(s))
		}
	}
	return 0
}

// number is an operand's value as an integer; false: there is no operand with an integer that fits.
func (c call) number(i int) (int64, bool) {
	if i < len(c.operands) {
		if n, ok := c.operands[i].Value.(ast.Number); ok {
			return n.Int64()
		}
	}
	return 0, false
}

// cost is the most memory that a call can take, or work that it can do, in bytes.
type cost func(c call) int64

// beyond is more than any budget, and so little that sums and multiples of it are numbers still.
const beyond = int64(1) << 50

func linear(factor int64) cost { return func(c call) int64 { return c.weight * factor } }

// collected is the cost of putting values into a set or an object.
func collected(c call) int64 { return c.weight*3 + quadratic(c.rough*sizeOfTerm, c.weight) }

// quadratic is work on each pair of two operands' parts.
func quadratic(a, b int64) int64 {
	if b > 0 && a > beyond/b {
		return beyond
	}
	return a * b / sizeOfTerm
}

// costs are the builtins that make something, or whose work grows faster than what they are given.
func costs() map[string]cost {
	out := map[string]cost{
		"numbers.range":      func(c call) int64 { return ranged(c, 1) },
		"numbers.range_step": func(c call) int64 { n, _ := c.number(2); return ranged(c, n) },
		"sprintf":            sprintfCost,
		"concat":             func(c call) int64 { return c.weight + c.text(0)*c.weight/sizeOfTerm },
		"replace": func(c call) int64 {
			return c.weight*4 + (c.text(0)/max(c.text(1), 1)+1)*c.text(2) + quadratic(c.text(1), c.text(1))
		},
		"strings.replace_n": func(c call) int64 { return c.weight*4 + (c.text(1)+1)*(c.weight-c.text(1)) },
		"regex.replace": func(c call) int64 {
			return c.weight + (c.text(0)+1)*(c.text(2)+1) + patternCost(c, 1, 0)
		},
		"indexof":        func(c call) int64 { return c.weight + quadratic(c.text(0), c.text(1)) },
		"indexof_n":      func(c call) int64 { return c.weight*sizeOfTerm + quadratic(c.text(0), c.text(1)) },
		"object.subset":  func(c call) int64 { return c.weight + quadratic(c.weight, c.weight) },
		"json.patch":     func(c call) int64 { return c.weight + quadratic(c.weight, c.weight) },
		"json.filter":    func(c call) int64 { return c.weight + quadratic(c.weight, c.weight) },
		"json.remove":    func(c call) int64 { return c.weight + quadratic(c.weight, c.weight) },
		"object.union_n": func(c call) int64 { return c.weight + quadratic(c.weight, c.weight) },
		"array.flatten":  linear(2),
		// Each step down takes stack, which is kept for the expressions that follow.
		"walk":         linear(8),
		"bits.lsh":     shiftCost,
		"product":      func(c call) int64 { return quadratic(c.weight, c.weight) },
		"json.marshal": linear(6), "yaml.marshal": linear(sizeOfTerm), // each control character is escaped
		"json.marshal_with_options": indentCost,
		"json.unmarshal":            linear(sizeOfParsed), "yaml.unmarshal": yamlCost, "yaml.is_valid": yamlCost,
		"json.is_valid": linear(sizeOfParsed),
		"split":         linear(sizeOfTerm), "strings.split_n": linear(sizeOfTerm),
		"regex.find_all_string_submatch_n": func(c call) int64 {
			return (c.text(1)+1)*4*sizeOfTerm*(c.text(0)+1) + patternCost(c, 0, 1)
		},
		"glob.match": func(c call) int64 {
			return c.text(0)*(c.text(0)+sizeOfParsed) + c.weight + 8*quadratic(c.text(0), c.text(2)*sizeOfTerm)
		},
		"urlquery.decode_object": linear(sizeOfTerm), "strings.any_prefix_match": linear(sizeOfTerm), "strings.any_suffix_match": linear(sizeOfTerm),
	}
	for _, name := range []string{"re_match", "regex.match", "regex.is_valid", "regex.split", "regex.find_n", "regex.template_match"} {
		out[name] = func(c call) int64 { return c.weight*4*sizeOfTerm + patternCost(c, 0, 1) }
	}
	for _, name := range []string{"trim", "trim_left", "trim_right"} { // each character is looked for in the others
		out[name] = func(c call) int64 { return c.weight*3 + quadratic(c.text(0), c.text(1)) }
	}
	for _, name := range []string{"and", "cast_set", "graph.reachable", "intersection", "object.filter", "object.keys", "object.remove",
		"object.union", "or", "set_diff", "minus", "union"} {
		out[name] = collected
	}
	for _, name := range []string{
		"abs", "array.concat", "array.reverse", "array.slice", "base64.decode", "base64.encode", "base64url.decode", "base64url.encode",
		"base64url.encode_no_pad", "bits.and", "bits.negate", "bits.or", "bits.rsh", "bits.xor", "cast_array", "cast_object", "ceil",
		"crypto.hmac.md5", "crypto.hmac.sha1", "crypto.hmac.sha256", "crypto.hmac.sha512", "crypto.md5", "crypto.sha1", "crypto.sha256", "div",
		"floor", "format_int", "glob.quote_meta", "hex.decode", "hex.encode", "internal.template_string", "lower",
		"mul", "plus", "rem", "round", "set_diff",
		"sort", "strings.count", "strings.reverse", "substring", "sum", "time.add_date", "time.clock", "time.date", "time.diff", "time.format",
		"time.parse_duration_ns", "time.parse_ns", "time.parse_rfc3339_ns", "time.weekday", "to_number", "trim", "trim_left", "trim_prefix",
		"trim_right", "trim_space", "trim_suffix", "units.parse", "units.parse_bytes", "upper", "uri.parse", "urlquery.decode",
		"urlquery.encode", "urlquery.encode_object", "uuid.parse",
	} {
		if out[name] == nil {
			out[name] = linear(3)
		}
	}
	return out
}

func ranged(c call, step int64) int64 {
	from, ok := c.number(0)
	to, also := c.number(1)
	if !ok || !also || from > 0 && to < from-beyond || from < 0 && to > from+beyond {
		return beyond
	}
	n := max(to-from, from-to)/max(step, -step, 1) + 1
	if n > beyond/sizeOfTerm {
		return beyond
	}
	return n * sizeOfTerm
}

// sprintfCost adds up the widths and precisions that the format asks for.
func sprintfCost(c call) int64 {
	format, ok := c.operands[0].Value.(ast.String)
	if !ok {
		return c.weight
	}
	total, digits, verb := c.weight*8, int64(0), false
	for _, r := range string(format) {
		switch {
		case r == '%':
			verb, digits = !verb, 0
		case !verb:
		case r == '*':
			return beyond
		case r >= '0' && r <= '9':
			digits = min(digits*10+int64(r-'0'), beyond/16)
		case r == '.' || strings.ContainsRune("+-# []", r):
			total, digits = total+digits, 0
		default:
			total, digits, verb = total+digits, 0, false
		}
		if total > beyond/16 {
			return beyond
		}
	}
	return total + digits
}

// maxRepeat is how often a part of a regular expression may be repeated by a number, all in all.
const maxRepeat = 1000

// patternCost is the cost of compiling a regular expression and of matching it with a text. Compiling makes as many
// copies of a part as its number of repetitions. Matching looks at each step of the expression for each character.
func patternCost(c call, pattern, text int) int64 {
	p, ok := c.operands[pattern].Value.(ast.String)
	if !ok {
		return 0
	}
	steps := int64(len(p)) * repeats(string(p))
	return steps*2*sizeOfParsed + 8*quadratic(steps, c.text(text))
}

// repeats is the product of all numbers in braces, at most maxRepeat.
func repeats(pattern string) int64 {
	product, digits, braces := int64(1), int64(0), false
	for _, r := range pattern {
		switch {
		case r == '{':
			braces, digits = true, 0
		case r == '}':
			product, braces = min(product*max(digits, 1), maxRepeat), false
		case braces && r == ',':
			product, digits = min(product*max(digits, 1), maxRepeat), 0
		case braces && r >= '0' && r <= '9':
			digits = min(digits*10+int64(r-'0'), maxRepeat)
		}
	}
	return product
}

func shiftCost(c call) int64 {
	if n, ok := c.number(1); !ok || n > MaxDigits {
		return beyond
	}
	return c.weight
}

// errNoBudget says that a call of a builtin cannot be checked.
var errNoBudget = errors.New("a builtin is called without a budget")

// reads are builtins that make values from text.
func reads(name string) bool { return name == "json.unmarshal" || name == "yaml.unmarshal" }

// makesComposites reports whether a builtin may make arrays, objects or sets. What walk gives are parts of what it is
// given.
func makesComposites(name string) bool {
	decl := ast.BuiltinMap[name]
	if decl == nil || name == "walk" {
		return false
	}
	switch decl.Decl.Result().(type) {
	case types.String, types.Boolean, types.Number:
		return false
	}
	return true
}

// weigher adds up a value's size, until there is more than most.
type weigher struct {
	total, most, rough int64
	depth, deepest     int
	large              bool
}

func (w *weigher) add(t *ast.Term) {
	if w.total > w.most {
		return
	}
	if w.depth++; w.depth > maxValueDepth {
		w.total = beyond
	}
	w.deepest = max(w.deepest, w.depth)
	w.total += sizeOfTerm / 4
	switch v := t.Value.(type) {
	case ast.String:
		w.total += int64(len(v))
	case ast.Number:
		w.total += int64(len(v))
		w.large = w.large || !SmallNumber(string(v))
		if len(v) > 15 || strings.ContainsAny(string(v), ".eE") {
			w.rough++
		}
	case *ast.Array:
		for i := range v.Len() {
			w.add(v.Elem(i))
		}
	case ast.Set:
		for _, x := range v.Slice() {
			w.add(x)
		}
	case ast.Object:
		v.Foreach(func(k, x *ast.Term) { w.add(k); w.add(x) })
	}
	w.depth--
}

// Larger reports whether a value has more bytes than most, roughly.
func Larger(t *ast.Term, most int64) bool {
	w := weigher{most: most}
	w.add(t)
	return w.total > most
}

// weigher gives the budget's one weigher, anew: nothing is weighed while something else is.
func (b *Budget) weigher() *weigher {
	b.scales = weigher{most: b.memory}
	return &b.scales
}

// Prefix is how calls that are checked are told from others.
const Prefix = "bounded."

// Instrument leads the calls of a compiled program's builtins through their checks. In modules that are not ours, it
// adds calls that weigh the values made there. It gives the builtins that are called, and the places of equations that
// are refused.
func Instrument(c *ast.Compiler, ours map[string]bool) (map[string]*topdown.Builtin, []*ast.Location) {
	w := &weighing{compiler: c}
	all, out := costs(), map[string]*topdown.Builtin{}
	rename := func(t *ast.Term) {
		ref, ok := t.Value.(ast.Ref)
		if !ok {
			return
		}
		name := ref.String()
		most, growing := all[name]
		decl, known := ast.BuiltinMap[name]
		if !growing || !known {
			return
		}
		if f := topdown.GetBuiltin(name); f != nil {
			t.Value = ast.Ref{ast.VarTerm(Prefix + name)}
			needs := *decl
			needs.CanSkipBctx = false // the budget is in it
			out[Prefix+name] = &topdown.Builtin{Decl: &needs, Func: checked(f, name, most)}
		}
	}
	for _, m := range c.Modules {
		ast.WalkExprs(m, func(x *ast.Expr) bool {
			if terms, ok := x.Terms.([]*ast.Term); ok && len(terms) > 0 {
				rename(terms[0])
			}
			for _, w := range x.With {
				rename(w.Target)
			}
			return false
		})
		if !ours[m.Package.Location.File] {
			for _, r := range m.Rules {
				w.rule(r)
			}
			out[nameMade], out[nameCompared] = made(), comparing()
		}
	}
	return out, w.tangled
}

// checked calls a builtin if the budget allows for what it can make.
func checked(f topdown.BuiltinFunc, name string, most cost) topdown.BuiltinFunc {
	numeric, values, composites := parsesNumbers(name), reads(name), makesComposites(name)
	return func(bctx topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
		b, ok := bctx.Cancel.(*Budget)
		if !ok {
			return topdown.Halt{Err: errNoBudget}
		}
		w := b.weigher()
		for _, t := range operands {
			w.add(t)
			if s, ok := t.Value.(ast.String); ok && numeric != nil && !numeric(string(s)) {
				w.large = true
			}
		}
		switch {
		case w.total > w.most: // asked first: errors of builtins may be shown with what they were given
			b.overworked()
			return topdown.Halt{Err: errors.New(b.spent)}
		case w.large:
			return largeNumber(bctx.Location, name)
		case !b.take(most(call{operands, w.total, w.rough, int64(w.deepest)})):
			return topdown.Halt{Err: errors.New(b.spent)}
		case values:
			return f(bctx, operands, b.read(bctx.Location, name, iter))
		case composites:
			return f(bctx, operands, b.built(iter))
		}
		return f(bctx, operands, iter)
	}
}

// built takes the parts of what a builtin gives.
func (b *Budget) built(iter func(*ast.Term) error) func(*ast.Term) error {
	return func(t *ast.Term) error {
		if !b.make(t) {
			return topdown.Halt{Err: errors.New(b.spent)}
		}
		return iter(t)
	}
}

// read is built for a builtin that reads a value from text.
func (b *Budget) read(at *ast.Location, name string, iter func(*ast.Term) error) func(*ast.Term) error {
	return func(t *ast.Term) error {
		w := b.weigher()
		if w.add(t); w.large {
			return largeNumber(at, name)
		}
		if w.total > w.most {
			b.overworked()
		}
		if b.spent != "" || !b.make(t) {
			return topdown.Halt{Err: errors.New(b.spent)}
		}
		return iter(t)
	}
}
