// Package delivery owns how background results reach threads: jobs, each thread's
// queue, batches, attempts, the fair order in which threads are served, and the
// ledger that proves every step.
//
// Machine is the only writer. Each method is one transaction on one lane (the
// delivery side of a thread), decided by pure functions of the rows and the
// transaction's time, fenced by generation, and recorded as an audit row with its
// proof. The barriers accept_pending and arm_pending are part of the machine: a
// channel is called only after one, and what cannot be proven afterwards is held
// for a human, never guessed and never sent again.
//
// The package knows no wire, no agent CLI and nothing of package thread. It calls
// no channel (package driver does), reads no clock and makes no ids.
package delivery
