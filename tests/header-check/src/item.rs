//! One declaration, and how a compiler is asked for what the headers have.

use std::fmt;

use crate::shape::{Shape, agree};

/// What a declaration is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The arguments and the result of a function.
    Signature,
    /// The place and the type of a field.
    Field,
    /// The size of a structure.
    Size,
    /// A number that has a name.
    Constant,
    /// CUPTI's number of a call.
    Callback,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::Signature,
        Self::Field,
        Self::Size,
        Self::Constant,
        Self::Callback,
    ];

    /// Returns the name of several items of the kind.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Signature => "signatures",
            Self::Field => "fields",
            Self::Size => "sizes",
            Self::Constant => "constants",
            Self::Callback => "callbacks",
        }
    }
}

/// An integer that a constant is declared as.
pub trait Number {
    /// Returns the number.
    fn number(&self) -> i128;
}

macro_rules! numbers {
    ($($type:ty)*) => {
        $(impl Number for $type {
            fn number(&self) -> i128 {
                i128::try_from(*self).unwrap_or(i128::MAX)
            }
        })*
    };
}

numbers! { u8 i8 u16 u32 i32 u64 i64 usize }

/// A declaration.
#[derive(Clone, Debug)]
pub struct Item {
    kind: Kind,
    /// The function, structure or constant.
    name: String,
    /// The field of the structure.
    field: Option<String>,
    /// What prints what the headers have, in C++.
    question: String,
    ours: String,
}

impl Item {
    /// Returns a function of a header. `F` is a pointer to it.
    pub fn function<F: Shape>(name: &str) -> Self {
        // A pointer, as the header declares the function itself.
        let ours = F::shape();
        Self {
            kind: Kind::Signature,
            name: name.to_owned(),
            field: None,
            // A macro may give the name to a later version of the function.
            question: format!("\n#undef {name}\nshape<decltype({name})>()"),
            ours: ours.trim_start_matches('*').to_owned(),
        }
    }

    /// Returns a type of a header that is a pointer to a function, as `F` is.
    pub fn function_type<F: Shape>(name: &str) -> Self {
        Self {
            kind: Kind::Signature,
            name: name.to_owned(),
            field: None,
            question: format!("shape<{name}>()"),
            ours: F::shape(),
        }
    }

    /// Returns a field of a structure: its name in the header, where it begins, and its type.
    pub fn field<F: Shape>(record: &str, field: &str, offset: usize) -> Self {
        Self {
            kind: Kind::Field,
            name: record.to_owned(),
            field: Some(field.to_owned()),
            question: format!(
                "std::to_string(offsetof({record}, {field})) + \" \" + \
                 shape_of_field<decltype((std::declval<{record}>().{field}))>()"
            ),
            ours: format!("{offset} {}", F::shape()),
        }
    }

    /// As [`field`](Self::field), with the type of the field that `get` returns.
    pub fn field_of<R, F: Shape>(
        record: &str,
        field: &str,
        offset: usize,
        _get: fn(&R) -> &F,
    ) -> Self {
        Self::field::<F>(record, field, offset)
    }

    /// Returns a structure with its size.
    pub fn size(record: &str, size: usize) -> Self {
        Self {
            kind: Kind::Size,
            name: record.to_owned(),
            field: None,
            question: format!("(long long)sizeof({record})"),
            ours: size.to_string(),
        }
    }

    /// Returns a constant.
    pub fn constant(name: &str, value: &impl Number) -> Self {
        Self::numbered(Kind::Constant, name, value)
    }

    /// Returns CUPTI's number of a call, which has a name in the header as constants do.
    pub fn callback(name: &str, value: u32) -> Self {
        Self::numbered(Kind::Callback, name, &value)
    }

    fn numbered(kind: Kind, name: &str, value: &impl Number) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            field: None,
            question: format!("(long long)({name})"),
            ours: value.number().to_string(),
        }
    }

    /// Returns the name that the header must have.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what the item is of.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Makes the item a wrong one, to show that this is found.
    pub fn plant(&mut self) {
        self.ours = match self.kind {
            Kind::Signature => self.ours.replacen("u32", "u64", 1),
            _ => format!("1{}", self.ours),
        };
    }

    pub(crate) fn question(&self) -> &str {
        &self.question
    }

    pub(crate) fn ours(&self) -> &str {
        &self.ours
    }

    pub(crate) fn agrees(&self, theirs: &str) -> bool {
        match (self.kind, self.ours.split_once(' '), theirs.split_once(' ')) {
            (Kind::Signature, ..) => agree(&self.ours, theirs),
            (Kind::Field, Some((ours, our_type)), Some((theirs, their_type))) => {
                ours == theirs && agree(our_type, their_type)
            }
            _ => self.ours == theirs,
        }
    }
}

/// As the statements name it: `function f`, `size of S`, `S.field`, or the name of a constant.
impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, &self.field) {
            (Kind::Size, _) => write!(f, "size of {}", self.name),
            (_, Some(field)) => write!(f, "{}.{field}", self.name),
            _ => f.write_str(&self.name),
        }
    }
}
