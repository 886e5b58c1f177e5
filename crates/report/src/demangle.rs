//! Names of kernels as they were written: `at::native::add<float>` for `_ZN2at6native3addIfEEvPf`.
//!
//! Kernels have the names of the linker. Of the scheme that compilers for CUDA use, that of the C++ ABI for Itanium, this
//! reads what names of kernels consist of: paths, template arguments and types. The parameters of the function are left
//! out. A name that has anything else stays as it is.

use std::borrow::Cow;

/// The deepest nesting of types that is read.
const MAX_DEPTH: u32 = 64;
/// The longest text of a part: short references to earlier parts could describe a text of any length.
const MAX_LENGTH: usize = 4096;

/// Returns a name as it was written, without parameters; the name itself if it is not mangled, or not understood.
pub fn demangle(name: &str) -> Cow<'_, str> {
    let Some(mangled) = name.strip_prefix("_Z") else {
        return Cow::Borrowed(name);
    };
    let mut parser = Parser {
        rest: mangled,
        earlier: Vec::new(),
        depth: 0,
    };
    match parser.name() {
        Some(path) => Cow::Owned(without_hash(path)),
        None => Cow::Borrowed(name),
    }
}

/// Removes the hash that Rust adds to a path.
fn without_hash(mut path: String) -> String {
    let hash = path.rfind("::h").filter(|at| path.len() - at == 19);
    let is_hash = |at: &usize| path[at + 3..].bytes().all(|byte| byte.is_ascii_hexdigit());
    if let Some(at) = hash.filter(is_hash) {
        path.truncate(at);
    }
    path
}

struct Parser<'m> {
    rest: &'m str,
    /// The parts that `S_`, `S0_`, … refer to.
    earlier: Vec<String>,
    depth: u32,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.rest.bytes().next()
    }

    fn eat(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Remembers a part, to which later ones may refer.
    fn remember(&mut self, text: &str) -> Option<()> {
        let is_short = text.len() <= MAX_LENGTH;
        is_short.then(|| self.earlier.push(text.to_owned()))
    }

    /// Reads with one more level of nesting.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.depth += 1;
        let result = (self.depth <= MAX_DEPTH).then(|| read(self)).flatten();
        self.depth -= 1;
        result
    }

    fn name(&mut self) -> Option<String> {
        self.nested(|parser| match parser.peek()? {
            b'N' => parser.nested_name(),
            _ => parser.unscoped_name(),
        })
    }

    fn unscoped_name(&mut self) -> Option<String> {
        let is_reference = self.peek() == Some(b'S') && !self.rest.starts_with("St");
        let mut text = if is_reference {
            self.reference()?
        } else if self.eat("St") {
            format!("std::{}", self.component("")?)
        } else {
            self.component("")?
        };
        if self.peek() == Some(b'I') {
            if !is_reference {
                self.remember(&text)?;
            }
            text += &self.template_arguments()?;
        }
        Some(text)
    }

    /// Reads `N`, the parts of a path, and `E`.
    fn nested_name(&mut self) -> Option<String> {
        self.rest = self.rest.strip_prefix('N')?;
        self.rest = self.rest.trim_start_matches(['r', 'V', 'K']);
        let mut path = String::new();
        let mut is_known = true;
        loop {
            // The whole path is remembered by its type, if it is one.
            if self.eat("E") {
                return (!path.is_empty()).then_some(path);
            }
            if !is_known {
                self.remember(&path)?;
            }
            match self.peek()? {
                b'S' if path.is_empty() => {
                    path = if self.eat("St") {
                        "std".to_owned()
                    } else {
                        self.reference()?
                    };
                    is_known = true;
                }
                b'I' => {
                    path += &self.template_arguments()?;
                    is_known = false;
                }
                _ => {
                    let component = self.component(&path)?;
                    if !path.is_empty() {
                        path += "::";
                    }
                    path += &component;
                    is_known = false;
                }
            }
            if path.len() > MAX_LENGTH {
                return None;
            }
        }
    }

    /// Reads one name of a path; `path` is what comes before.
    fn component(&mut self, path: &str) -> Option<String> {
        // The name is not visible in other files.
        self.eat("L");
        let name = match self.peek()? {
            b'0'..=b'9' => self.identifier()?,
            b'C' | b'D' if !path.is_empty() => {
                let is_destructor = self.peek() == Some(b'D');
                self.rest = self.rest.get(2..)?;
                let class = path.rsplit("::").next()?;
                let class = class.split('<').next()?;
                format!("{}{class}", if is_destructor { "~" } else { "" })
            }
            b'U' => self.unnamed()?,
            _ if self.eat("cl") => "operator()".to_owned(),
            _ => return None,
        };
        // Tags of the ABI do not belong to the name.
        while self.eat("B") {
            self.identifier()?;
        }
        Some(name)
    }

    fn identifier(&mut self) -> Option<String> {
        let length = self.number()?;
        let name = self.rest.get(..length)?;
        self.rest = &self.rest[length..];
        if name.starts_with("_GLOBAL__N_") {
            return Some("(anonymous namespace)".to_owned());
        }
        (!name.is_empty()).then(|| name.to_owned())
    }

    fn number(&mut self) -> Option<usize> {
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = self.rest[..digits].parse().ok()?;
        self.rest = &self.rest[digits..];
        Some(number)
    }

    /// Reads a lambda or a type without a name.
    fn unnamed(&mut self) -> Option<String> {
        let kind = if self.eat("Ul") {
            let mut parameters = Vec::new();
            while !self.eat("E") {
                let parameter = self.type_name()?;
                parameters.extend(Some(parameter).filter(|text| text != "void"));
            }
            format!("lambda({})", parameters.join(", "))
        } else if self.eat("Ut") {
            "unnamed type".to_owned()
        } else {
            return None;
        };
        let number = if self.peek() == Some(b'_') {
            1
        } else {
            self.number()?.checked_add(2)?
        };
        self.eat("_").then(|| format!("{{{kind}#{number}}}"))
    }

    /// Reads a reference to an earlier part, or the abbreviation of a class of the standard library.
    fn reference(&mut self) -> Option<String> {
        for (short, long) in [
            ("Sa", "std::allocator"),
            ("Sb", "std::basic_string"),
            ("Ss", "std::string"),
            ("Si", "std::istream"),
            ("So", "std::ostream"),
            ("Sd", "std::iostream"),
        ] {
            if self.eat(short) {
                return Some(long.to_owned());
            }
        }
        self.rest = self.rest.strip_prefix('S')?;
        let (digits, rest) = self.rest.split_once('_')?;
        let index = if digits.is_empty() {
            0
        } else {
            usize::from_str_radix(digits, 36).ok()?.checked_add(1)?
        };
        self.rest = rest;
        self.earlier.get(index).cloned()
    }

    fn template_arguments(&mut self) -> Option<String> {
        self.nested(|parser| {
            parser.rest = parser.rest.strip_prefix('I')?;
            let mut arguments = Vec::new();
            parser.push_arguments(&mut arguments)?;
            let list = arguments.join(", ");
            let space = if list.ends_with('>') { " " } else { "" };
            (list.len() <= MAX_LENGTH).then(|| format!("<{list}{space}>"))
        })
    }

    /// Reads arguments until `E`.
    fn push_arguments(&mut self, arguments: &mut Vec<String>) -> Option<()> {
        while !self.eat("E") {
            if self.eat("J") {
                self.nested(|parser| parser.push_arguments(arguments))?;
            } else if self.peek() == Some(b'L') {
                arguments.push(self.literal()?);
            } else {
                arguments.push(self.type_name()?);
            }
        }
        Some(())
    }

    /// Reads `L`, a type, a value, and `E`.
    fn literal(&mut self) -> Option<String> {
        self.rest = self.rest.strip_prefix('L')?;
        if self.eat("_Z") {
            let name = self.name()?;
            return self.eat("E").then_some(name);
        }
        let kind = self.type_name()?;
        let (value, rest) = self.rest.split_once('E')?;
        self.rest = rest;
        let value = match value.strip_prefix('n') {
            Some(negative) => format!("-{negative}"),
            None => value.to_owned(),
        };
        Some(match (&*kind, &*value) {
            ("bool", "0") => "false".to_owned(),
            ("bool", "1") => "true".to_owned(),
            ("int", _) => value,
            ("unsigned int", _) => value + "u",
            ("long", _) => value + "l",
            ("unsigned long", _) => value + "ul",
            _ => format!("({kind}){value}"),
        })
    }

    fn type_name(&mut self) -> Option<String> {
        self.nested(Self::any_type)
    }

    fn any_type(&mut self) -> Option<String> {
        if let Some(builtin) = self.builtin() {
            return Some(builtin.to_owned());
        }
        for (prefix, suffix) in [
            ("P", "*"),
            ("R", "&"),
            ("O", "&&"),
            ("K", " const"),
            ("V", " volatile"),
            ("Dp", "..."),
        ] {
            if self.eat(prefix) {
                let text = self.type_name()? + suffix;
                self.remember(&text)?;
                return Some(text);
            }
        }
        let text = match self.peek()? {
            b'S' if !self.rest.starts_with("St") => {
                let text = self.reference()?;
                if self.peek() != Some(b'I') {
                    return Some(text);
                }
                text + &self.template_arguments()?
            }
            b'A' => {
                self.eat("A");
                let length = self.number()?;
                if !self.eat("_") {
                    return None;
                }
                format!("{} [{length}]", self.type_name()?)
            }
            b'u' => {
                self.eat("u");
                self.identifier()?
            }
            b'N' | b'S' | b'0'..=b'9' => self.name()?,
            _ => return None,
        };
        self.remember(&text)?;
        Some(text)
    }

    fn builtin(&mut self) -> Option<&'static str> {
        const BUILTIN: [(&str, &str); 26] = [
            ("v", "void"),
            ("b", "bool"),
            ("c", "char"),
            ("a", "signed char"),
            ("h", "unsigned char"),
            ("s", "short"),
            ("t", "unsigned short"),
            ("i", "int"),
            ("j", "unsigned int"),
            ("l", "long"),
            ("m", "unsigned long"),
            ("x", "long long"),
            ("y", "unsigned long long"),
            ("n", "__int128"),
            ("o", "unsigned __int128"),
            ("f", "float"),
            ("d", "double"),
            ("e", "long double"),
            ("g", "__float128"),
            ("w", "wchar_t"),
            ("z", "..."),
            ("Dn", "decltype(nullptr)"),
            ("Dh", "half"),
            ("Di", "char32_t"),
            ("Ds", "char16_t"),
            ("Du", "char8_t"),
        ];
        let known = BUILTIN.iter().find(|(code, _)| self.rest.starts_with(code));
        let (code, name) = known?;
        self.eat(code);
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // As `c++filt` of binutils writes them, without return types and parameters.
    #[test]
    fn names_of_kernels_are_as_they_were_written() {
        for (mangled, name) in [
            ("saxpy", "saxpy"),
            ("_Z5saxpyfPfS_", "saxpy"),
            ("_ZN2at6native3addIfEEvPT_", "at::native::add<float>"),
            (
                "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_",
                "at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, \
                 std::array<char*, 3ul> >",
            ),
            (
                "_ZN7cutlass6KernelINS_4gemm4TileILi128ELb1EEES3_EEvNT_6ParamsE",
                "cutlass::Kernel<cutlass::gemm::Tile<128, true>, cutlass::gemm::Tile<128, true> >",
            ),
            (
                "_ZN12_GLOBAL__N_17softmaxIKfPKdLin1ELj3EEEvv",
                "(anonymous namespace)::softmax<float const, double const*, -1, 3u>",
            ),
            ("_Z4packIJifEEvDpT_", "pack<int, float>"),
            (
                "_ZN3ops5applyIZNS_3runEvEUlfE_EEvT_",
                "_ZN3ops5applyIZNS_3runEvEUlfE_EEvT_",
            ),
            ("_ZN1a1fINS_UliE0_EEEvv", "a::f<a::{lambda(int)#2}>"),
            ("_ZN7kernels4step17h0123456789abcdefE", "kernels::step"),
            ("_Z", "_Z"),
            ("_Z999a", "_Z999a"),
            ("_ZN1aS9_E", "_ZN1aS9_E"),
        ] {
            assert_eq!(demangle(mangled), name, "{mangled}");
        }
    }

    #[test]
    fn a_name_that_would_be_endless_stays_as_it_is() {
        let deep = format!("_Z1fI{}fE", "P".repeat(100_000));
        assert_eq!(demangle(&deep), deep);
        // Each argument is twice as long as the one before.
        let mut long = "_Z1fI1aIffE".to_owned();
        for index in 0..30 {
            let digit = char::from_digit(index, 36).expect("a digit");
            let digit = &*digit.to_ascii_uppercase().to_string();
            long.extend(["1bIS", digit, "_S", digit, "_E"]);
        }
        assert!(demangle(&(long + "E")).len() < 100 * MAX_LENGTH);
    }

    proptest! {
        #[test]
        fn any_text_has_a_name(tail in "[NIESLTJPKCDUZ_0-3a-f]{0,40}|.{0,20}") {
            let name = format!("_Z{tail}");
            prop_assert!(!demangle(&name).is_empty());
        }
    }
}
