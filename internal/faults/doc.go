// Package faults is test support: it puts a disturbed line between a process
// under test and its API server.
//
// An Injector sits in the HTTP transport of a rest.Config, so everything that
// is built from that config goes through it: cached and live clients, status
// writes, server-side apply, Helm, leader election and watches. Rules say which
// request meets which fate: a refusal as the API server would word it, a hold,
// a dropped watch, or the end of the process.
//
// A process dies in one of two ways, and they leave different traces.
// CutBefore: the write never reached the server. CutAfter: the server committed
// the write, and the process died before it heard so. From the cut on nothing
// gets through, reads included, because a dead process does not read.
//
// CrashAtEveryWrite proves that a process is resumable: it runs a Scenario
// undisturbed, counts its writes, then kills the process at each of them in both
// ways, starts it again and demands the end state of the undisturbed run.
// DisturbEveryWrite does the same with any other Action.
package faults
