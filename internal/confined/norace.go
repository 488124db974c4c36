//go:build !race

package confined

// racing says that this program was built with the race detector, which takes many times the memory.
const racing = false
