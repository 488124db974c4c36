package decisions

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// entry is a decision to code.
type entry struct {
	now  int64
	name string
	of   *deployment
	// doc is the rest; nil where it has not been read.
	doc *node
	// wanted is by who reads, and made what was read.
	wanted bool
	made   Decision
}

func entryOf(d *Decision) (*entry, error) {
	name, err := d.Deployment()
	if err != nil {
		return nil, err
	}
	if d.Timestamp.Nanosecond() != 0 {
		return nil, fmt.Errorf("its time %s is not in whole seconds", d.Timestamp)
	}
	if now := d.Timestamp.Unix(); now < 0 || now > maxInstant {
		return nil, fmt.Errorf("its time %s is before 1970, or after the year 9999", d.Timestamp)
	}
	input, err := parsed(inputRoot, d.Input)
	if err != nil {
		return nil, err
	}
	result, err := parsed(resultRoot, d.Result)
	if err != nil {
		return nil, err
	}
	doc := map[string]any{"path": d.Path, inputRoot: input, resultRoot: result}
	rest, err := json.Marshal(struct {
		Labels  map[string]string
		Bundles map[string]Bundle
		Masked  []string `json:"Erased"` // as version 1 of the format has it
	}{d.Labels, d.Bundles, d.Masked})
	if err != nil {
		return nil, fmt.Errorf("encode its labels: %w", err)
	}
	if doc["meta"], err = parse(rest); err != nil {
		return nil, fmt.Errorf("encode its labels: %w", err)
	}
	tree := nodeOf(doc)
	if depth(tree) >= maxDepth || tree.size > maxSize {
		return nil, fmt.Errorf("its JSON is nested more than %d deep, or larger than %d bytes", maxDepth, maxSize)
	}
	return &entry{now: d.Timestamp.Unix(), name: name.String(), doc: tree}, nil
}

func depth(x *node) int {
	deepest := 0
	for _, k := range x.kids {
		deepest = max(deepest, depth(k))
	}
	return deepest + 1
}

// decision makes the JSON.
func (e *entry) decision() (Decision, error) {
	d := Decision{Timestamp: time.Unix(e.now, 0).UTC(), Path: e.doc.get("path").said()}
	var rest struct {
		Labels  map[string]string
		Bundles map[string]Bundle
		Masked  []string `json:"Erased"` // as version 1 of the format has it
	}
	input, result, meta := e.doc.get(inputRoot), e.doc.get(resultRoot), e.doc.get("meta")
	if input == nil || result == nil || meta == nil {
		return d, errors.New("it has no input, result or labels")
	}
	if err := json.Unmarshal(meta.appendJSON(nil), &rest); err != nil {
		return d, fmt.Errorf("its labels: %w", err)
	}
	d.Labels, d.Bundles, d.Masked = rest.Labels, rest.Bundles, rest.Masked
	d.Input, d.Result = input.appendJSON(nil), result.appendJSON(nil)
	d.ID = d.digest()
	return d, nil
}
