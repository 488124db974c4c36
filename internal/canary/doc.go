// Package canary says whether a candidate fails more often than the current version, by counts of closed workflows
// alone.
//
// It is pure: numbers in, numbers out, nothing is remembered from one look to the next. Compare may be called after
// every single workflow, and the chance that it ever calls a healthy candidate worse stays under Input.Alpha over all
// stages of a rollout together. A p-value has no such promise: looked at often enough, it falls under any limit by
// chance.
//
// # The test
//
// Closed workflows make a table: failed or not, on the candidate or on current. Compare asks of the failures which part
// is the candidate's, and the same of the successes, and whether the first part is larger. With x the part among
// failures and y the part among successes, the odds ratio x/(1-x) : y/(1-y) is that of the two failure rates, so it is
// the same question. Asked this way round it does not depend on how often workflows fail at a given moment: whatever
// fails for a reason that is not the candidate's (an outage of a database, a bad hour) falls on both versions as
// traffic does.
//
// The evidence e is the likelihood of the table under a mixture of x and y, divided by the largest likelihood that any
// x and y can give it under which the candidate is not worse. For each such x and y, e is at most a likelihood ratio,
// which is a nonnegative martingale that begins at 1, so by Ville's inequality the chance that e ever reaches 1/a is at
// most a. Sources:
//
//   - J. Ville, Étude critique de la notion de collectif, 1939: the inequality.
//   - H. Robbins, Statistical methods related to the law of the iterated logarithm, Annals of Mathematical Statistics
//     41 (1970): mixtures as tests of power one.
//   - L. Wasserman, A. Ramdas, S. Balakrishnan, Universal inference, PNAS 117 (2020): dividing by the maximum over
//     the null hypothesis, and that it may be looked at at any time.
//   - M. Lindon, A. Malek, Anytime-valid inference for multinomial count data, NeurIPS 2022: asking which arm an
//     event belongs to, so that rates may change with time.
//   - R. Krichevsky, V. Trofimov, The performance of universal encoding, IEEE Transactions on Information Theory 27
//     (1981): Beta(1/2, 1/2) as the mixture that loses little against any x.
//
// It holds if every workflow of the stage had the same chance of being sent to the candidate, independently of the
// others, which is how Temporal ramps (by a hash of the workflow's ID), and if both versions' workflows are counted
// from the same moment. It does not see workflows that never close.
//
// # The ceiling
//
// A second test looks at the candidate alone: whether its rate is above Input.Ceiling for certain. Its evidence is a
// mixture of likelihood ratios against the ceiling. Each of the ratios is a supermartingale while the rate at each
// workflow, given those before, is at most the ceiling.
package canary
