//! What `main` and `unwrap` print of an error: they use `Debug`.

/// Implements `Debug` for an error with these variants: the variant, and the message, which has the values of all fields and
/// says what to do.
#[macro_export]
macro_rules! debug_with_message {
    ($error:ident: $($(#[$attribute:meta])* $variant:ident),+) => {
        impl ::std::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> std::fmt::Result {
                let variant = match self {
                    $($(#[$attribute])* Self::$variant { .. } => stringify!($variant),)+
                };
                let name = format!(concat!(stringify!($error), "::{}"), variant);
                f.debug_tuple(&name).field(&self.to_string()).finish()
            }
        }
    };
}
