package index

import (
	"encoding/json"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// CacheData is the last usable configuration for the next run, "" if it is not known.
func (l *LastUsable) CacheData() string {
	if l.environments == nil {
		return ""
	}
	text, err := json.Marshal(l.environments)
	if err != nil {
		return ""
	}
	return string(text)
}

// LoadCacheData takes the CacheData of an earlier run.
func (l *LastUsable) LoadCacheData(text string) error {
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
