//! Examples of the profiler beside other crates. The library is empty.
