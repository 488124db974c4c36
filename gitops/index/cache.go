package index

import "maps"

// CachedEntry is the entry of a spec or a record, and what it is of.
type CachedEntry struct {
	Path, Hash string
	Spec       specEntry
	Record     recordEntry
}

// CacheData gives the entries of specs and records that surveys made, and those of an earlier run where there was no
// survey yet.
func (r *Reader) CacheData() (specs, records []CachedEntry) {
	ofSpecs, ofRecords := maps.Clone(r.index.specs), maps.Clone(r.index.records)
	if ofSpecs == nil {
		ofSpecs, ofRecords = map[fileKey]specEntry{}, map[fileKey]recordEntry{}
	}
	for _, dir := range r.dirs {
		for _, f := range dir.files {
			if f.entry != nil {
				ofSpecs[f.key()] = *f.entry
			}
		}
	}
	for _, in := range r.folders {
		for _, at := range in.at {
			if at.at != nil && (at.at.partial || at.at.noted) {
				ofRecords[fileKey{at.dir, at.hash}] = at.at.says
			}
		}
	}
	for k, v := range ofSpecs {
		specs = append(specs, CachedEntry{Path: k.path, Hash: k.hash, Spec: v})
	}
	for k, v := range ofRecords {
		records = append(records, CachedEntry{Path: k.path, Hash: k.hash, Record: v})
	}
	return specs, records
}

// LoadCacheData takes the entries that surveys of an earlier run made.
func (r *Reader) LoadCacheData(specs, records []CachedEntry) {
	r.index.specs, r.index.records = make(map[fileKey]specEntry, len(specs)),
		make(map[fileKey]recordEntry, len(records))
	for _, f := range specs {
		r.index.specs[fileKey{f.Path, f.Hash}] = f.Spec
	}
	for _, f := range records {
		r.index.records[fileKey{f.Path, f.Hash}] = f.Record
	}
}
