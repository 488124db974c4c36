package sandbox

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"go.yaml.in/yaml/v3"
)

// indentCost is that of writing JSON in which each value's line begins with a prefix, and with an indent as often as it
// is deep.
func indentCost(c call) int64 {
	margin := int64(0)
	if options, ok := c.operands[1].Value.(ast.Object); ok {
		options.Foreach(func(_, v *ast.Term) {
			if s, ok := v.Value.(ast.String); ok {
				margin += int64(len(s))
			}
		})
	}
	return c.weight*6 + quadratic(c.weight*4*c.deepest, margin)
}

// yamlCost is that of reading YAML with its aliases written out.
func yamlCost(c call) int64 {
	text, ok := c.operands[0].Value.(ast.String)
	if !ok {
		return c.weight
	}
	size := int64(len(text))
	if strings.Contains(string(text), "*") && strings.Contains(string(text), "&") {
		var document yaml.Node
		if yaml.Unmarshal([]byte(text), &document) == nil {
			size = max(size, writtenOut(&document, map[*yaml.Node]int64{}))
		}
	}
	return min(size, beyond/sizeOfParsed/4) * sizeOfParsed * 2
}

// writtenOut is how long YAML is with its aliases written out. sizes are those that are known; of what is within itself
// it is beyond.
func writtenOut(n *yaml.Node, sizes map[*yaml.Node]int64) int64 {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if size, ok := sizes[n]; ok {
		return size
	}
	sizes[n] = beyond
	size := int64(len(n.Value) + 1)
	for _, part := range n.Content {
		size = min(size+writtenOut(part, sizes), beyond)
	}
	sizes[n] = size
	return size
}
