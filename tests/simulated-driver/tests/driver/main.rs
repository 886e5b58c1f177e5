//! Tests of the simulated driver: it behaves as NVIDIA's manual says, and as the profiler's tests need.

automod::dir!("tests/driver");
