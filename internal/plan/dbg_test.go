package plan

import (
	"fmt"
	"testing"
	"time"
)

func TestDbg(t *testing.T) {
	w := newWorld(t)
	w.startV1()
	w.push("v2")
	w.run(30 * time.Hour)
	s := w.look()
	p := Propose(s)
	fmt.Println(w.commits, w.server.now, p.Row, p.State, sayAll(p.Actions), Ask(s))
	for _, o := range s.Observation.Versions {
		fmt.Printf("%+v\n", o)
	}
	v := newView(&s)
	r := v.recorded(id("v1"))
	fmt.Println(v.status(r.BuildID), v.needed(r), v.idle(v.obs, r), v.sunsetFrom(r), v.promotions)
}
