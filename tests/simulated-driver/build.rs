//! Links the driver so that its internal calls bind to itself.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // A second driver in the same process must not intercept these calls, and the library must
        // not depend on a symbol that an installation hides.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    }
}
