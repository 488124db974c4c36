package index

import (
	"encoding/json"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// Remember is the last usable configuration for the next run, "" if it is not known.
func (l *LastUsable) Remember() string {
	if l.environments == nil {
		return ""
	}
	text, err := json.Marshal(l.environments)
	if err != nil {
		return ""
	}
	return string(text)
}

// Recall takes what an earlier run remembered.
func (l *LastUsable) Recall(text string) error {
	if text == "" {
		return nil
	}
	var all []v1alpha1.Environment
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return err
	}
	l.environments = all
	return nil
}
