package index

import "maps"

// Remembered is a brief of a spec or a record, and what it is of.
type Remembered struct {
	Path, Hash string
	Spec       specBrief
	Record     recordBrief
}

// Remember gives what surveys found out about specs and records, and what an earlier run did where there was none yet.
func (r *Reader) Remember() (specs, records []Remembered) {
	ofSpecs, ofRecords := maps.Clone(r.briefs.specs), maps.Clone(r.briefs.records)
	if ofSpecs == nil {
		ofSpecs, ofRecords = map[fileKey]specBrief{}, map[fileKey]recordBrief{}
	}
	for _, dir := range r.dirs {
		for _, f := range dir.files {
			if f.brief != nil {
				ofSpecs[f.key()] = *f.brief
			}
		}
	}
	for _, in := range r.folders {
		for _, at := range in.at {
			if at.at != nil && (at.at.brief || at.at.noted) {
				ofRecords[fileKey{at.dir, at.hash}] = at.at.says
			}
		}
	}
	for k, v := range ofSpecs {
		specs = append(specs, Remembered{Path: k.path, Hash: k.hash, Spec: v})
	}
	for k, v := range ofRecords {
		records = append(records, Remembered{Path: k.path, Hash: k.hash, Record: v})
	}
	return specs, records
}

// Recall takes what surveys of an earlier run found out.
func (r *Reader) Recall(specs, records []Remembered) {
	r.briefs.specs, r.briefs.records = make(map[fileKey]specBrief, len(specs)),
		make(map[fileKey]recordBrief, len(records))
	for _, f := range specs {
		r.briefs.specs[fileKey{f.Path, f.Hash}] = f.Spec
	}
	for _, f := range records {
		r.briefs.records[fileKey{f.Path, f.Hash}] = f.Record
	}
}
