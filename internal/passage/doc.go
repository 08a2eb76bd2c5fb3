// Package passage is the vocabulary that every kind of move shares, and the
// engine that moves things in batches.
//
// A passage is observed, planned, applied and reported. What is observed and
// what is applied differs from passage to passage; the words in between do not:
//
//   - a [Plan] is a list of [Step], each with what, from, to and why;
//   - a [Gate] is one reason to hold the whole plan, and [FirstHold] asks a list
//     of them in order;
//   - [Next] decides which steps of a plan start now, which are waited for and when
//     to requeue;
//   - a [View] is what the command line and the dashboard draw of it.
//
// Nothing here reads a clock, a cluster or the environment. The same input
// gives the same result, so a plan that was printed is the plan that is applied,
// and a process that was killed continues where it was.
package passage
