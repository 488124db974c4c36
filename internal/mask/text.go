package mask

// Text gives a text that may be about anything with the credentials in it masked, as they are in the texts of a
// decision.
func (m *Masker) Text(s string) string {
	w := masking{masker: m, masked: map[string]bool{}, gone: map[string]bool{}}
	return w.inAnyText([]string{inputRoot}, s)
}
