//! Nothing: the program is the test.
