package cmdutil

import (
	"fmt"
	"runtime/debug"
)

// Version is what the binary was built from.
type Version struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform,omitempty"`
	// Revision of the source, Time of that commit, and whether there were changes beside it, where the build knows
	// them.
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
}

// ReadVersion reads what the go command wrote into the binary; the version is "unknown" without that.
func ReadVersion() Version {
	v := Version{Version: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Go = info.GoVersion
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	var system, arch string
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		case "GOOS":
			system = s.Value
		case "GOARCH":
			arch = s.Value
		}
	}
	if system != "" {
		v.Platform = system + "/" + arch
	}
	return v
}

func (v Version) String() string {
	out := fmt.Sprintf("rampart %s (%s", v.Version, v.Go)
	if v.Platform != "" {
		out += ", " + v.Platform
	}
	if v.Revision != "" {
		out += ", commit " + v.Revision + " of " + v.Time
	}
	if v.Modified {
		out += ", modified"
	}
	return out + ")"
}
