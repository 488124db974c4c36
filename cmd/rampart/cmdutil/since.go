package cmdutil

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Days is a flag for a duration of whole days; 0 stands for no limit.
type Days time.Duration

func (d *Days) String() string {
	if *d == 0 {
		return "0"
	}
	return strconv.Itoa(int(time.Duration(*d)/(24*time.Hour))) + "d"
}

// Type is what help calls it.
func (d *Days) Type() string { return "days" }

// Set reads a number of days such as 400d, or 0.
func (d *Days) Set(text string) error {
	n, err := strconv.Atoi(strings.TrimSuffix(text, "d"))
	if err != nil || n < 0 || n > maxDays || n > 0 && !strings.HasSuffix(text, "d") {
		return fmt.Errorf("parse %q: want a number of days such as 400d, or 0", text)
	}
	*d = Days(n) * Days(24*time.Hour)
	return nil
}

// maxDays bounds flags in days.
const maxDays = 36_500

// Since is a flag that says how far back to look: a duration such as 30d or 12h, or a time.
type Since struct {
	text string
	back time.Duration
	at   time.Time
}

// LookBack gives a Since whose default is a number of days.
func LookBack(days int) Since {
	return Since{text: strconv.Itoa(days) + "d", back: time.Duration(days) * 24 * time.Hour}
}

func (s *Since) String() string { return s.text }

// Type is what help calls it.
func (s *Since) Type() string { return "duration" }

// Set reads a duration, a date or an RFC 3339 time; "" sets none.
func (s *Since) Set(text string) error {
	*s = Since{text: text}
	if text == "" {
		return nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			s.at = at
			return nil
		}
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n <= maxDays {
			s.back = time.Duration(n) * 24 * time.Hour
			return nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return fmt.Errorf("%q: want a duration such as 30d or 12h, or a time such as 2026-03-01 or "+
			"2026-03-01T12:00:00Z", text)
	}
	s.back = d
	return nil
}

// Time gives the time to look back to, seen from now; the zero time if none is set.
func (s *Since) Time(now time.Time) time.Time {
	if s.back > 0 {
		return now.Add(-s.back)
	}
	return s.at
}
