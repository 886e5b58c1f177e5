//! Links the driver so that its calls among themselves stay inside it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // A second driver in the same process must not answer for this one, and a symbol that an
        // installation hides must not be needed by the library itself.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    }
}
