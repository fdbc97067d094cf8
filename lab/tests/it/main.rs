//! The program from outside: what it answers to bad input, and what it leaves behind when it dies.

mod calibration;
mod cli;
mod faults;
mod floods;
mod guarded_run;
mod incomplete;
mod inspect;
mod kills;
mod observe;
mod observe_command;
mod observe_far;
mod observe_follow;
mod observe_opaque;
mod observe_pooler;
mod secrets;
mod services;
mod unprivileged;
