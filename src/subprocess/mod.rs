//! Supervised child processes of this program's own binary.
//!
//! A read from a dead mount or a write to a hung device waits in the kernel; not even SIGKILL ends such a thread, and a
//! process that has one cannot exit. So whatever may block runs in a child: a session of its own, standard streams
//! that are pipes or `/dev/null`, messages of one JSON object a line. A child that does not come back is killed, left
//! to a thread that reaps it if it ever ends, and never waited for.
//!
//! Three ways to talk to one:
//!
//! - [`request`]: a batch of requests, one reply each, then the child ends. [`pool`] queues such batches.
//! - [`handle`]: one order, then the child works by itself and sends messages until its last one. [`runner`] starts
//!   and replaces such children without ever waiting.
//! - [`process`] and [`frame`] alone, for protocols of their own (the tuner, the file worker of recordings).
//!
//! [`child`] is the other end of the pipes. [`fork_server`] and [`resident`], each with a [`helper`] process, make all
//! this work without reading the program's file again: the disk that hangs may be the one it lies on.

pub mod budget;
pub mod child;
pub mod fork_server;
pub mod frame;
pub mod handle;
pub mod helper;
pub mod owner;
pub mod pool;
pub mod process;
pub mod request;
pub mod resident;
pub mod runner;
pub mod system_program;
pub mod terminal_guard;
