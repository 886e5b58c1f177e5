//! Runs the program as a user does. All these tests are one test program, which is linked once.

mod command_line;
mod diff;
mod explain;
mod files;
mod folders;
mod merge;
mod outputs;
mod run;
mod support;
mod top_in_a_terminal;
mod torch;
