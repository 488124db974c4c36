// Package metrics reads the metrics that specs name from Prometheus, as facts.
//
// A metric is an instant query with placeholders (see v1alpha1.ParseQuery) that gives one series with one finite
// number. Anything else (no series, several, NaN, a warning, an error, a time-out) becomes the fact's Error in words,
// never a value. The words are the same as long as what is wrong is the same, so that they may be written to Git.
//
// # How old a value is
//
// Prometheus stamps an answer with the time of its evaluation, whatever the age of the samples behind it: a selector
// finds samples of up to five minutes ago (its lookback), rate(x[10m]) of up to ten. So a query that is only a
// selector, such as the name of a recording rule with labels, is asked a second time inside timestamp(), at the same
// instant, which gives the sample's own time; timestamp() of any other expression is the time of its evaluation, and so
// is the fact's. The lookback of each query is limited to its maxAge, which servers since 2.44 heed (parameter
// lookback_delta, github.com/prometheus/prometheus/pull/12088).
//
// Where the server is, and the credential for it, are the bot's own configuration. Queries are half trusted: they
// choose what is asked, not where. The credential goes to the configured address alone, and no redirect leaves it.
//
// # A server that is away
//
// A call of Facts, which is one cycle's, ends early when a query gets no answer in time, or there is no server, while
// no other query gets an answer: a server that is away costs one time-out, however much is asked. A circuit breaker
// keeps the calls after it from asking anything for two time-outs; then one call tries again. A call takes two
// time-outs at most; the next begins with what had no turn.
//
// A Client may be used by several goroutines. What it keeps between two calls saves time and decides nothing.
package metrics
