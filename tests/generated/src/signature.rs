//! Draws signatures: the kind of function, its receiver, its parameters and its return type.

use fastrand::Rng;

use crate::scope::{Hold, Variable};

/// What a call returns, or the future that it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Unit,
    Number,
    D,
    Option,
    Result,
    Text,
    Event,
    Events,
    Pair,
    /// `&D`, borrowed from a parameter.
    Borrow,
    /// `impl Debug`
    Opaque,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sync,
    Async,
    /// `impl Future`
    Opaque,
    /// `impl Future + Clone`
    Cloned,
    /// `Pin<Box<dyn Future>>`
    Pinned,
    /// `Pin<Box<impl Future>>`
    PinnedOpaque,
    /// `BoxFuture` or `LocalBoxFuture`
    Alias,
    /// `Box<dyn Future + Unpin>`
    Unpin,
    /// `Box<dyn Future>`
    Boxed,
}

impl Kind {
    fn draw(rng: &mut Rng) -> Self {
        match rng.u32(0..100) {
            0..25 => Self::Sync,
            25..57 => Self::Async,
            57..71 => Self::Opaque,
            71..85 => Self::Pinned,
            85..89 => Self::PinnedOpaque,
            89..94 => Self::Alias,
            94..98 => Self::Unpin,
            98 => Self::Boxed,
            _ => Self::Cloned,
        }
    }

    /// Returns `true` for a function that is not `async` but returns a future.
    pub(crate) fn returns_future(self) -> bool {
        !matches!(self, Self::Sync | Self::Async)
    }

    /// Returns `true` if all futures that the function returns have one type that cannot be named.
    pub(crate) fn is_opaque(self) -> bool {
        matches!(self, Self::Opaque | Self::Cloned | Self::PinnedOpaque)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Free,
    Inherent,
    Trait,
}

struct Parameter {
    pattern: String,
    kind: String,
    /// Statements of the caller before the call.
    setup: String,
    argument: String,
}

pub(crate) struct Signature {
    pub(crate) kind: Kind,
    pub(crate) output: Output,
    pub(crate) place: Place,
    pub(crate) variables: Vec<Variable>,
    /// The future of the function can be sent to another thread.
    pub(crate) sends: bool,
    /// The value of [`Output::Borrow`].
    pub(crate) borrow: String,
    /// Returned values that borrow have the lifetime `'a`.
    explicit: bool,
    /// The number of references among the parameters.
    borrows: usize,
    /// The bound of the generic parameter is in a `where` clause.
    clause: bool,
    receiver: Option<(String, String)>,
    generics: usize,
    parameters: Vec<Parameter>,
}

impl Signature {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let kind = Kind::draw(rng);
        let place = match rng.u32(0..10) {
            0..6 => Place::Free,
            6..8 => Place::Inherent,
            _ if matches!(kind, Kind::Sync | Kind::Async | Kind::Pinned) => Place::Trait,
            _ => Place::Inherent,
        };
        let mut signature = Self {
            kind,
            output: Output::Unit,
            place,
            variables: Vec::new(),
            sends: kind != Kind::Sync && rng.u32(0..3) > 0,
            borrow: String::new(),
            explicit: kind.returns_future() || rng.u32(0..5) == 0,
            borrows: 0,
            clause: rng.u32(0..3) == 0,
            receiver: None,
            generics: 0,
            parameters: Vec::new(),
        };
        if place != Place::Free {
            signature.draw_receiver(rng);
        }
        for at in 0..rng.usize(0..4) {
            signature.draw_parameter(rng, at);
        }
        signature.draw_output(rng);
        let elidable = signature.borrows == 1 && signature.generics == 0;
        signature.explicit &= !(elidable && rng.bool());
        signature
    }

    /// Returns `true` if the body can move fields out of `self`.
    pub(crate) fn owns_self(&self) -> bool {
        let receiver = self.receiver.as_ref().map(|receiver| receiver.0.as_str());
        matches!(receiver, Some("self" | "mut self"))
    }

    fn draw_output(&mut self, rng: &mut Rng) {
        self.output = match rng.u32(0..22) {
            _ if self.kind == Kind::Cloned => Output::Number,
            0..3 => Output::Unit,
            3..8 => Output::Number,
            8..11 => Output::D,
            11..13 => Output::Option,
            13..16 => Output::Result,
            16 => Output::Text,
            17 => Output::Event,
            18 => Output::Events,
            19 => Output::Pair,
            20 if !self.kind.returns_future() && self.place == Place::Free => Output::Opaque,
            _ => Output::Borrow,
        };
        let shared = |variable: &&Variable| variable.hold == Hold::Shared && variable.leaves;
        match self.variables.iter().find(shared) {
            Some(found) if self.output == Output::Borrow => {
                let own = found.name == "self";
                self.borrow = if own { "&self.d" } else { &found.name }.to_owned();
                // The elided lifetime is that of `self`, or that of the only reference.
                let single = own || self.receiver.is_none() && self.parameters.len() == 1;
                self.explicit |= !single;
            }
            None if self.output == Output::Borrow => self.output = Output::Number,
            _ => {}
        }
    }

    fn draw_receiver(&mut self, rng: &mut Rng) {
        let own = "Own::new(\"own\", \"field\")";
        let this = |hold| Variable::new("self", hold).place("self.d");
        let (variable, written, value) = match rng.u32(0..10) {
            0..2 => (this(Hold::Owner), "self", own.to_owned()),
            2 => (this(Hold::Owner).mutable(true), "mut self", own.to_owned()),
            3..6 => (this(Hold::Shared), "&self", own.to_owned()),
            6 => (this(Hold::Unique), "&mut self", own.to_owned()),
            7 => {
                let value = format!("Box::new({own})");
                (this(Hold::Owner), "self: Box<Self>", value)
            }
            8 if !self.sends => {
                let value = format!("Rc::new({own})");
                (this(Hold::Owner), "self: Rc<Self>", value)
            }
            _ => {
                let value = format!("Arc::new({own})");
                (this(Hold::Owner), "self: Arc<Self>", value)
            }
        };
        self.borrows += usize::from(written.starts_with('&'));
        self.variables.push(variable);
        self.receiver = Some((written.to_owned(), value));
    }

    fn draw_parameter(&mut self, rng: &mut Rng, at: usize) {
        let name = format!("p{at}");
        let new = |name: &str| format!("D::new({name:?})");
        let one = new(&name);
        let (left, right) = (format!("l{at}"), format!("r{at}"));
        let values = format!("{}, {}", new(&left), new(&right));
        let value = |name: &str| Variable::new(name, Hold::Value);
        let variable = |hold| Variable::new(&name, hold);
        let mut setup = String::new();
        let mut bound = Vec::new();
        let (pattern, kind, argument) = match rng.u32(0..26) {
            0..5 => {
                bound.push(value(&name));
                (name.clone(), "D", one)
            }
            5..7 => {
                bound.push(value(&name).mutable(true));
                (format!("mut {name}"), "D", one)
            }
            7..9 => (format!("_{name}"), "D", one),
            9 => {
                bound.push(value(&format!("_{name}")));
                (format!("_{name}"), "D", one)
            }
            10 => ("_".to_owned(), "D", one),
            11..13 => {
                bound.extend([value(&left), value(&right).mutable(true)]);
                let pattern = format!("({left}, mut {right})");
                (pattern, "(D, D)", format!("({values})"))
            }
            13 => {
                bound.push(value(&right));
                (format!("(_, {right})"), "(D, D)", format!("({values})"))
            }
            14 => {
                bound.extend([value(&left), value(&right)]);
                let pattern = format!("Pair {{ left: {left}, right: {right} }}");
                let argument = format!("Pair {{ left: {}, right: {} }}", new(&left), new(&right));
                (pattern, "Pair", argument)
            }
            15 => {
                bound.push(value(&left));
                let argument = format!("Pair {{ left: {}, right: {} }}", new(&left), new(&right));
                (format!("Pair {{ left: {left}, .. }}"), "Pair", argument)
            }
            16 => {
                bound.push(variable(Hold::Shared).stays());
                (format!("ref {name}"), "D", one)
            }
            17 => {
                bound.push(value(&left));
                let pattern = format!("[{left}, _{right}]");
                (pattern, "[D; 2]", format!("[{values}]"))
            }
            18..20 => {
                bound.push(variable(Hold::Shared));
                setup = format!("let {name} = {one};\n");
                (name.clone(), "&'a D", format!("&{name}"))
            }
            20 => {
                bound.push(variable(Hold::Unique));
                setup = format!("let mut {name} = {one};\n");
                (name.clone(), "&'a mut D", format!("&mut {name}"))
            }
            21 => {
                bound.push(variable(Hold::Number));
                let pattern = format!("&{name}");
                (pattern, "&'a usize", "&2".to_owned())
            }
            22..24 => {
                bound.push(variable(Hold::Number));
                (name.clone(), "usize", "3".to_owned())
            }
            24 => {
                bound.push(variable(Hold::Maybe));
                let pattern = name.clone();
                (pattern, "Option<D>", format!("Some({one})"))
            }
            _ => {
                let place = format!("{name}.d()");
                bound.push(variable(Hold::Owner).place(&place));
                let kind = if self.generics > 0 { "impl Thing" } else { "T" };
                self.generics += 1;
                (name.clone(), kind, one)
            }
        };
        self.variables.extend(bound);
        self.borrows += usize::from(kind.starts_with('&'));
        self.parameters.push(Parameter {
            pattern,
            kind: kind.to_owned(),
            setup,
            argument,
        });
    }

    /// Returns ` + 'a` if the returned future may borrow, and ` + Send` if it is sent.
    fn bounds(&self) -> String {
        let lifetime = if self.borrows > 0 { " + 'a" } else { "" };
        let send = if self.sends { " + Send" } else { "" };
        format!("{send}{lifetime}")
    }

    fn future(&self, of: &str, output: &str, more: &str) -> String {
        format!("{of} Future<Output = {output}>{more}{}", self.bounds())
    }

    fn returned(&self) -> String {
        let output = match self.output {
            Output::Unit => "()",
            Output::Number => "usize",
            Output::D => "D",
            Output::Option => "Option<D>",
            Output::Result => "Result<D, Fault>",
            Output::Text => "String",
            Output::Event => "Event",
            Output::Events => "Option<Event>",
            Output::Pair => "(D, usize)",
            Output::Borrow => "&'a D",
            Output::Opaque => "impl Debug",
        };
        let lifetime = if self.borrows > 0 { "'a" } else { "'static" };
        match self.kind {
            Kind::Sync | Kind::Async if self.output == Output::Unit => String::new(),
            Kind::Sync | Kind::Async => format!(" -> {output}"),
            Kind::Opaque => format!(" -> {}", self.future("impl", output, "")),
            Kind::Cloned => format!(" -> {}", self.future("impl", output, " + Clone")),
            Kind::Pinned => format!(" -> Pin<Box<{}>>", self.future("dyn", output, "")),
            Kind::PinnedOpaque => format!(" -> Pin<Box<{}>>", self.future("impl", output, "")),
            Kind::Alias if self.sends => format!(" -> BoxFuture<{lifetime}, {output}>"),
            Kind::Alias => format!(" -> LocalBoxFuture<{lifetime}, {output}>"),
            Kind::Unpin => format!(" -> Box<{}>", self.future("dyn", output, " + Unpin")),
            Kind::Boxed => format!(" -> Box<{}>", self.future("dyn", output, "")),
        }
    }

    /// Writes the signature. Without patterns, it is the declaration in a trait.
    pub(crate) fn written(&self, name: &str, patterns: bool) -> String {
        let erased = self.kind.returns_future() && !self.kind.is_opaque();
        let mut bound = "Thing".to_owned();
        if self.sends {
            bound += " + Send + Sync";
        }
        match self.kind.returns_future() {
            true if self.borrows > 0 => bound += " + 'a",
            true if erased => bound += " + 'static",
            _ => {}
        }
        let explicit = self.explicit && self.borrows > 0;
        let lifetime = |kind: &str| {
            if explicit {
                return kind.to_owned();
            }
            kind.replace("'a ", "").replace("'a", "'_")
        };
        let mut generics = Vec::new();
        if explicit {
            generics.push("'a".to_owned());
        }
        let mut clause = String::new();
        if self.generics > 0 && self.clause {
            generics.push("T".to_owned());
            clause = format!(" where T: {bound}");
        } else if self.generics > 0 {
            generics.push(format!("T: {bound}"));
        }
        let generics = match generics.join(", ") {
            none if none.is_empty() => none,
            some => format!("<{some}>"),
        };
        let mut parameters = Vec::new();
        if let Some((receiver, _)) = &self.receiver {
            let plain = receiver.replace("mut self", "self");
            let receiver = match receiver.strip_prefix('&') {
                Some(place) => lifetime(&format!("&'a {place}")),
                None if patterns => receiver.clone(),
                None => plain,
            };
            parameters.push(receiver);
        }
        for (at, parameter) in self.parameters.iter().enumerate() {
            let declared = format!("_{at}");
            let pattern = if patterns {
                &parameter.pattern
            } else {
                &declared
            };
            let kind = lifetime(&parameter.kind).replace("impl Thing", &format!("impl {bound}"));
            parameters.push(format!("{pattern}: {kind}"));
        }
        let keyword = if self.kind == Kind::Async {
            "async "
        } else {
            ""
        };
        let parameters = parameters.join(", ");
        let returned = lifetime(&self.returned());
        format!("{keyword}fn {name}{generics}({parameters}){returned}{clause}")
    }

    /// Writes the function that makes the case: a call of the function.
    pub(crate) fn case(&self, name: &str, index: usize) -> String {
        let mut setup: String = self.parameters.iter().map(|p| p.setup.as_str()).collect();
        let arguments: Vec<&str> = self
            .parameters
            .iter()
            .map(|p| p.argument.as_str())
            .collect();
        let mut call = format!("{name}({})", arguments.join(", "));
        if let Some((receiver, value)) = &self.receiver {
            let mutable = if receiver == "&mut self" { "mut " } else { "" };
            setup.extend(["let ", mutable, "own = ", value, ";\n"]);
            call = format!("own.{call}");
        }
        if self.sends {
            call = format!("sent({call})");
        }
        let end = "show(&result);\n";
        let run = match self.kind {
            Kind::Sync => {
                return format!(
                    "pub fn case{index}() -> Case {{\nCase::Call(|| {{\n{setup}let result = {call};\n{end}}})\n}}\n"
                );
            }
            Kind::Boxed => "Box::into_pin(future)",
            Kind::Cloned => "future.clone()",
            _ => "future",
        };
        format!(
            "pub fn case{index}() -> Case {{\nCase::Future(|| Box::pin(async {{\n{setup}\
             let future = {call};\nlater(\"between\", 1).await;\nlet result = {run}.await;\n\
             {end}}}))\n}}\n"
        )
    }
}
