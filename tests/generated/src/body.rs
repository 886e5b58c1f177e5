//! Draws the bodies of functions: statements that the compiler accepts where they stand.

use fastrand::Rng;

use crate::scope::{Hold, Scope, Variable};
use crate::signature::{Kind, Output, Signature};

/// How the statements of a block may leave it.
#[derive(Clone, Copy)]
enum Exit {
    /// Not at all: the body of a closure.
    Closed,
    /// With a value, and by `?` if the type of the error is known.
    Value { output: Output, question: bool },
    /// With a future of the function's kind.
    Future,
}

#[expect(clippy::struct_excessive_bools, reason = "all combinations occur")]
pub(crate) struct Body<'a> {
    rng: &'a mut Rng,
    edition: u16,
    signature: &'a Signature,
    scope: Scope,
    exit: Exit,
    awaits: bool,
    /// The innermost block is in a loop that ends even if it is always continued.
    loops: bool,
    depth: usize,
    /// The expression is the last one of a block.
    at_end: bool,
    /// All values that the function returns are created by `ready`.
    ready: bool,
    has_item: bool,
    serial: usize,
}

/// Kinds of variables that are moved into functions.
const THINGS: &[Hold] = &[Hold::Value, Hold::Owner, Hold::Guard];

/// Draws the body of a function, with its braces.
pub(crate) fn draw(rng: &mut Rng, edition: u16, signature: &Signature) -> String {
    let scope = Scope::of_parameters(&signature.variables);
    let output = signature.output;
    let future = signature.kind.returns_future();
    let value = Exit::Value {
        output,
        question: true,
    };
    let ready = signature.kind == Kind::Cloned || rng.u32(0..5) == 0;
    let mut body = Body {
        rng,
        edition,
        signature,
        scope,
        exit: if future { Exit::Future } else { value },
        awaits: signature.kind == Kind::Async,
        loops: false,
        depth: 0,
        at_end: false,
        ready,
        has_item: false,
        serial: 0,
    };
    let most = if future { 3 } else { 6 };
    let mut inside = String::new();
    if body.chance(12) {
        inside += "#![allow(unused_variables)]\n";
    }
    inside += &body.block(most);
    format!("{{\n{inside}}}")
}

impl Body<'_> {
    fn chance(&mut self, of: u32) -> bool {
        self.rng.u32(0..of) == 0
    }

    fn name(&mut self, prefix: &str) -> String {
        self.serial += 1;
        format!("{prefix}{}", self.serial)
    }

    fn pick(&mut self, from: &[usize]) -> Option<usize> {
        (!from.is_empty()).then(|| from[self.rng.usize(..from.len())])
    }

    /// Returns the place of a variable that only this expression reads.
    fn place(&mut self) -> String {
        let readable = self.scope.readable();
        match self.pick(&readable) {
            Some(at) => self.scope.get(at).place.clone(),
            None => self.new_value("t"),
        }
    }

    /// Returns a temporary that may be a guard.
    fn temporary(&mut self) -> String {
        let readable = if self.at_end {
            self.scope.readable_at_end(self.edition)
        } else {
            self.scope.readable()
        };
        match self.pick(&readable) {
            Some(at) if !self.chance(4) => {
                let place = self.scope.borrow(at);
                format!("{place}.lock()")
            }
            _ => self.new_value("t"),
        }
    }

    fn new_value(&mut self, prefix: &str) -> String {
        let name = self.name(prefix);
        format!("D::new({name:?})")
    }

    fn flip(&mut self, chance_of_true: u32) -> String {
        let name = self.name("if");
        let value = self.chance(chance_of_true);
        format!("flip({name:?}, {value})")
    }

    fn condition(&mut self, chance_of_true: u32) -> String {
        if self.chance(4) {
            // The temporaries of a condition are dropped before the block.
            let around = self.scope.begin_statement();
            let temporary = self.temporary();
            self.scope.end_statement(around);
            return format!("{temporary}.size() > 2");
        }
        self.flip(chance_of_true)
    }

    /// Draws the two sides of a branch. A variable that one moves is moved afterwards.
    fn sides(&mut self, mut draw: impl FnMut(&mut Self) -> String) -> (String, String) {
        let before = self.scope.gone();
        let mut side = |this: &mut Self| {
            let outer = this.scope.enter(false, false);
            let text = draw(this);
            this.scope.leave(&outer);
            text
        };
        let first = side(self);
        let mut gone = self.scope.gone();
        self.scope.set_gone(&before);
        let second = side(self);
        for (gone, other) in gone.iter_mut().zip(self.scope.gone()) {
            *gone |= other;
        }
        self.scope.set_gone(&gone);
        (first, second)
    }

    /// Draws statements and the last expression of the block that is the body of a function or of
    /// an `async` block.
    fn block(&mut self, most: usize) -> String {
        let mut text = self.statements(most);
        let exit = self.exit;
        let end = match exit {
            Exit::Closed => String::new(),
            Exit::Value { output, .. } => self.end(output),
            Exit::Future => self.future_end(),
        };
        text += &end;
        if !end.is_empty() && exit_is_unit(exit) && self.chance(2) {
            text.push(';');
        }
        text + "\n"
    }

    fn statements(&mut self, most: usize) -> String {
        let at_end = std::mem::replace(&mut self.at_end, false);
        let mut text = String::new();
        for _ in 0..self.rng.usize(0..=most) {
            let around = self.scope.begin_statement();
            self.depth += 1;
            text += &self.statement();
            self.depth -= 1;
            self.scope.end_statement(around);
            text.push('\n');
        }
        self.at_end = at_end;
        text
    }

    fn nested(&mut self) -> String {
        self.statements(if self.depth < 3 { 2 } else { 1 })
    }

    fn statement(&mut self) -> String {
        let deep = self.depth > 3;
        match self.rng.u32(0..44) {
            0..10 => self.local(),
            10..12 => format!("{}.touch();", self.temporary()),
            12..14 => self.change(),
            14..18 => self.moved(),
            18..22 if !deep => self.branch(),
            22..25 if !deep => self.repeated(),
            25..27 => self.closure(),
            27..30 if self.awaits && !deep => self.inner_future(),
            30..33 if self.awaits => format!("show(&{});", self.awaited()),
            33..35 => self.question(),
            35..37 => self.left(),
            37..39 => self.of_std(),
            39 => self.panics(),
            40 | 41 if self.depth == 1 => self.item(),
            42 => "log(std::panic::Location::caller().line());".to_owned(),
            _ => format!("{}.touch();", self.place()),
        }
    }

    fn local(&mut self) -> String {
        let name = self.name("v");
        match self.rng.u32(0..13) {
            0..3 => {
                let value = self.value();
                self.scope.add(Variable::new(&name, Hold::Value));
                format!("let {name} = {value};")
            }
            3 => {
                let value = self.value();
                self.scope
                    .add(Variable::new(&name, Hold::Value).mutable(true));
                format!("let mut {name} = {value};\n{name}.change();")
            }
            4 => {
                let (left, right) = (self.value(), self.value());
                let other = self.name("v");
                self.scope.add(Variable::new(&name, Hold::Value));
                self.scope.add(Variable::new(&other, Hold::Value));
                format!("let ({name}, {other}) = ({left}, {right});")
            }
            5 => format!("let _{name} = {};", self.value()),
            6 => format!("let _ = {};", self.temporary()),
            7 | 8 => {
                let readable = self.scope.readable();
                let Some(at) = self.pick(&readable) else {
                    return format!("let _{name} = {};", self.value());
                };
                let place = self.scope.get(at).place.clone();
                let guard = Variable::new(&name, Hold::Guard).borrowing(at).stays();
                self.scope.add(guard);
                format!("let {name} = {place}.lock();")
            }
            9 => {
                let values = self.scope.movable(&[Hold::Value]);
                let Some(at) = self.pick(&values) else {
                    return format!("let _{name} = {};", self.value());
                };
                let reference = Variable::new(&name, Hold::Shared).borrowing(at).stays();
                let keyword = if self.chance(2) { "&" } else { "ref" };
                let borrowed = self.scope.get(at).name.clone();
                self.scope.add(reference);
                match keyword {
                    "ref" => format!("let ref {name} = {borrowed};"),
                    _ => format!("let {name} = &{borrowed};"),
                }
            }
            10 => {
                let readable = self.scope.readable();
                let plain = readable
                    .into_iter()
                    .filter(|at| self.scope.get(*at).name != "self");
                let plain: Vec<usize> = plain.collect();
                let Some(at) = self.pick(&plain) else {
                    return format!("let _{name} = {};", self.value());
                };
                let variable = self.scope.get(at);
                let (shadowed, place) = (variable.name.clone(), variable.place.clone());
                self.scope.add(Variable::new(&shadowed, Hold::Value));
                format!("let {shadowed} = {place}.child({name:?});")
            }
            11 => {
                self.scope.add(Variable::new(&name, Hold::Maybe));
                let some = self.rng.bool();
                format!("let {name} = maybe({name:?}, {some});")
            }
            _ => {
                let number = self.number(2);
                self.scope.add(Variable::new(&name, Hold::Number));
                format!("let {name} = {number};")
            }
        }
    }

    fn change(&mut self) -> String {
        let changeable = self.scope.changeable();
        match self.pick(&changeable) {
            Some(at) => format!("{}.change();", self.scope.get(at).place),
            None => format!("{}.touch();", self.place()),
        }
    }

    /// Moves a variable, on one path or on all.
    fn moved(&mut self) -> String {
        let movable = self.scope.movable(THINGS);
        let Some(at) = self.pick(&movable) else {
            return format!("{}.touch();", self.place());
        };
        let condition = self.chance(2).then(|| self.flip(2));
        let partly = self.scope.get(at).place == "self.d" && self.signature.owns_self();
        // A guard that is dropped on one path still borrows on the other.
        let outer = self.scope.enter(false, false);
        if condition.is_none() {
            self.scope.leave(&outer);
        }
        let name = self.scope.take(at);
        if condition.is_some() {
            self.scope.leave(&outer);
        }
        let moved = match self.rng.u32(0..3) {
            0 if partly => "take(self.d);".to_owned(),
            0 => format!("take({name});"),
            1 => format!("drop({name});"),
            _ => format!("drop(pass({name}));"),
        };
        match condition {
            Some(condition) => format!("if {condition} {{\n{moved}\n}}"),
            None => moved,
        }
    }

    fn branch(&mut self) -> String {
        match self.rng.u32(0..6) {
            0 | 1 => {
                let condition = self.condition(2);
                let (first, second) = self.sides(Self::nested);
                format!("if {condition} {{\n{first}}} else {{\n{second}}}")
            }
            2 => {
                let condition = self.condition(2);
                let outer = self.scope.enter(false, false);
                let inside = self.nested();
                self.scope.leave(&outer);
                format!("if {condition} {{\n{inside}}}")
            }
            3 => {
                let number = self.number(1);
                let (first, second) = self.sides(Self::nested);
                let at = self.rng.u32(1..4);
                format!("match {number} {{\n{at} => {{\n{first}}}\n_ => {{\n{second}}}\n}}")
            }
            4 => {
                let temporary = self.temporary();
                let (name, some) = (self.name("o"), self.rng.bool());
                let (first, second) = self.sides(Self::nested);
                format!(
                    "if let Some({name}) = {temporary}.optional({name:?}, {some}) {{\n\
                     {name}.touch();\n{first}}} else {{\n{second}}}"
                )
            }
            _ => {
                let maybe = self.scope.movable(&[Hold::Maybe]);
                let Some(at) = self.pick(&maybe) else {
                    return format!("{}.touch();", self.place());
                };
                let taken = self.scope.take(at);
                let name = self.name("o");
                let (first, second) = self.sides(Self::nested);
                format!(
                    "match {taken} {{\nSome({name}) => {{\n{name}.touch();\n{first}}}\n\
                     None => {{\n{second}}}\n}}"
                )
            }
        }
    }

    fn repeated(&mut self) -> String {
        let label = self.name("'l");
        let labeled = self.chance(3);
        let times = self.rng.u32(1..4);
        let counter = self.name("i");
        let to = if labeled { &format!(" {label}") } else { "" };
        let prefix = if labeled {
            format!("{label}: ")
        } else {
            String::new()
        };
        let counts = !self.chance(3);
        let outer = self.scope.enter(true, false);
        let loops = std::mem::replace(&mut self.loops, counts);
        let inside = self.nested();
        self.loops = loops;
        self.scope.leave(&outer);
        if !counts {
            let value = self.new_value("v");
            let (kept, ends) = (self.name("v"), self.name("if"));
            self.scope.add(Variable::new(&kept, Hold::Value));
            return format!(
                "let {kept} = {prefix}loop {{\nlet value = {value};\n{inside}\
                 if flip({ends:?}, true) {{\nbreak{to} value;\n}}\n}};"
            );
        }
        let leaving = match self.rng.u32(0..3) {
            0 => format!("if {counter} == 1 {{\nbreak{to};\n}}\n"),
            1 => format!("if {counter} == 0 {{\ncontinue{to};\n}}\n"),
            _ => String::new(),
        };
        format!("{prefix}for {counter} in 0..{times} {{\nlog({counter});\n{leaving}{inside}}}")
    }

    /// Draws in a block of its own, with other ways to leave it.
    fn inside<T>(&mut self, exit: Exit, awaits: bool, draw: impl FnOnce(&mut Self) -> T) -> T {
        let exit = std::mem::replace(&mut self.exit, exit);
        let awaits = std::mem::replace(&mut self.awaits, awaits);
        let loops = std::mem::take(&mut self.loops);
        let drawn = draw(self);
        (self.exit, self.awaits, self.loops) = (exit, awaits, loops);
        drawn
    }

    fn closure(&mut self) -> String {
        let name = self.name("f");
        let movable = self.scope.movable(THINGS);
        if self.rng.bool()
            && let Some(at) = self.pick(&movable)
        {
            let moved = self.scope.take(at);
            let call = self.chance(2);
            let call = if call {
                format!("log({name}());")
            } else {
                format!("drop({name});")
            };
            return format!("let {name} = move || take({moved});\n{call}");
        }
        let outer = self.scope.enter(true, true);
        let statements = self.inside(Exit::Closed, false, Self::nested);
        let place = self.place();
        self.scope.leave(&outer);
        format!("let {name} = |x: usize| {{\n{statements}x + {place}.size()\n}};\nlog({name}(1));")
    }

    /// Draws an `async` block that gives a number.
    fn inner_future(&mut self) -> String {
        let name = self.name("v");
        let future = self.name("f");
        let exit = Exit::Value {
            output: Output::Number,
            question: false,
        };
        let block = if self.chance(2) {
            let outer = self.scope.enter(true, true);
            let block = self.inside(exit, true, |this| this.block(2));
            self.scope.leave(&outer);
            format!("async {{\n{block}}}")
        } else {
            self.moving_block(exit, 2)
        };
        let number = Variable::new(&name, Hold::Number);
        match self.rng.u32(0..4) {
            0 => format!("drop({block});"),
            1 => {
                self.scope.add(number);
                format!("let {name} = {block}.await;")
            }
            _ => {
                let between = self.new_value("t");
                self.scope.add(number);
                format!("let {future} = {block};\n{between}.touch();\nlet {name} = {future}.await;")
            }
        }
    }

    /// Draws an `async move` block, which may capture everything that can be captured.
    fn moving_block(&mut self, exit: Exit, most: usize) -> String {
        let leaves = matches!(self.exit, Exit::Future);
        // Unless the future is the last one, every second variable stays behind.
        let kept: usize = self.rng.usize(0..2);
        let mut at = 0;
        let captured = self.scope.captured(|variable| {
            at += 1;
            let owned = matches!(variable.hold, Hold::Value | Hold::Owner | Hold::Maybe);
            if leaves {
                variable.leaves && variable.hold != Hold::Guard
            } else {
                owned && at % 2 == kept || variable.hold == Hold::Number
            }
        });
        self.scope.lose(&captured);
        let scope = std::mem::replace(&mut self.scope, captured);
        let at_end = std::mem::replace(&mut self.at_end, false);
        let block = self.inside(exit, true, |this| this.block(most));
        self.at_end = at_end;
        self.scope = scope;
        format!("async move {{\n{block}}}")
    }

    /// Draws an expression that awaits a number.
    fn awaited(&mut self) -> String {
        let name = self.name("w");
        let pending = self.rng.u32(0..3);
        let movable = self.scope.movable(&[Hold::Value, Hold::Owner]);
        match self.rng.u32(0..6) {
            0 => format!("wait!(later({name:?}, {pending}))"),
            1 => format!("{}.work({name:?}, {pending}).await", self.place()),
            2 => format!("{}.work({name:?}, {pending}).await", self.temporary()),
            3 => match self.pick(&movable) {
                Some(at) => format!("consume({}, {pending}).await", self.scope.take(at)),
                None => format!("consume({}, {pending}).await", self.new_value("t")),
            },
            _ => format!("later({name:?}, {pending}).await"),
        }
    }

    fn question(&mut self) -> String {
        let Exit::Value { output, question } = self.exit else {
            return format!("{}.touch();", self.place());
        };
        let name = self.name("v");
        let good = !self.chance(4);
        let function = match output {
            Output::Result if question => "fallible",
            Output::Option | Output::Events if question => "maybe",
            _ => return self.left(),
        };
        self.scope.add(Variable::new(&name, Hold::Value));
        format!("let {name} = {function}({name:?}, {good})?;")
    }

    /// Draws the value of a `return`, which is that of a block of its own.
    fn returned(&mut self) -> Option<String> {
        let exit = self.exit;
        let outer = self.scope.enter(false, false);
        let gone = self.scope.gone();
        let value = match exit {
            Exit::Closed => None,
            Exit::Value { output, .. } => Some(self.result(output)),
            Exit::Future if self.signature.kind.is_opaque() && !self.ready => None,
            Exit::Future => Some(self.future()),
        };
        self.scope.leave(&outer);
        // Statements after the `return` run only if it did not.
        self.scope.set_gone(&gone);
        value
    }

    /// Leaves the function, a loop, or the block early.
    fn left(&mut self) -> String {
        let condition = self.condition(4);
        if self.loops && self.chance(2) {
            let keyword = if self.rng.bool() { "break" } else { "continue" };
            return format!("if {condition} {{\n{keyword};\n}}");
        }
        let around = self.scope.begin_statement();
        let value = self.returned();
        self.scope.end_statement(around);
        let Some(value) = value else {
            return format!("{}.touch();", self.place());
        };
        match self.rng.u32(0..14) {
            0..2 => format!("leave_if!({condition}, {value});"),
            2 => format!("info!({condition}, {value});"),
            3 => {
                let (name, temporary) = (self.name("v"), self.temporary());
                let some = !self.chance(4);
                format!(
                    "let Some({name}) = {temporary}.optional({name:?}, {some}) else {{\n\
                     return {value};\n}};\n{name}.touch();"
                )
            }
            4 => {
                let name = self.name("leave");
                format!(
                    "macro_rules! {name} {{\n($value:expr) => {{\nreturn $value\n}};\n}}\n\
                     if {condition} {{\n{name}!({value});\n}}"
                )
            }
            _ => format!("if {condition} {{\nreturn {value};\n}}"),
        }
    }

    fn of_std(&mut self) -> String {
        let name = self.name("s");
        match self.rng.u32(0..5) {
            0 => format!("assert!({}.size() > 0);", self.temporary()),
            1 => format!("assert_eq!({0}.size(), {0}.size());", self.place()),
            2 => format!(
                "let {name} = format!(\"{{:?}}\", {}.name());\nlog({name});",
                self.temporary()
            ),
            3 => {
                let (first, second) = (self.value(), self.value());
                format!("let {name} = vec![{first}, {second}];\nlog({name}.len());")
            }
            _ => format!("log(format_args!(\"{{}}\", {}.name()));", self.temporary()),
        }
    }

    fn panics(&mut self) -> String {
        match self.rng.u32(0..5) {
            0 => format!("assert!({}, \"must hold\");", self.flip(2)),
            1 => format!("log({}.fail());", self.temporary()),
            2 => {
                let name = self.name("v");
                let some = self.rng.bool();
                format!("let _{name} = maybe({name:?}, {some}).unwrap();")
            }
            _ => {
                let condition = self.condition(2);
                format!("if {condition} {{\npanic!(\"here\");\n}}")
            }
        }
    }

    /// Draws an item with the name of something outside, or that looks like it.
    fn item(&mut self) -> String {
        let items = [
            "use support::other::Event;\nshow(&Event::Mouse);",
            "use support::other::Fault;\nshow(&Fault);",
            "#[derive(Debug)]\nenum Event {\nMouse,\n}\nshow(&Event::Mouse);",
            "type Fault = usize;\nlet fault: Fault = 3;\nlog(fault);",
            "type Result<T> = std::result::Result<T, usize>;\nlet fine: Result<usize> = Ok(1);\nshow(&fine);",
            "#[derive(Debug)]\nstruct Option;\nshow(&Option);",
            "#[derive(Debug)]\nstruct String;\nshow(&String);",
            "const LIMIT: usize = 3;\nlog(LIMIT);",
            "fn helper(x: usize) -> usize {\nx + 1\n}\nlog(helper(1));",
            "trait Future {\nfn now(&self) -> usize;\n}\nimpl Future for usize {\nfn now(&self) -> usize {\n*self\n}\n}\nlog(3.now());",
        ];
        let item = items[self.rng.usize(..items.len())];
        // A block may declare a name once.
        if std::mem::replace(&mut self.has_item, true) || self.chance(4) {
            return format!("{{\n{item}\n}}");
        }
        item.to_owned()
    }

    /// Draws a `D`.
    fn value(&mut self) -> String {
        let movable = self.scope.movable(&[Hold::Value]);
        let name = self.name("t");
        match self.rng.u32(0..9) {
            0..3 => match self.pick(&movable) {
                Some(at) => self.scope.take(at),
                None => self.new_value("t"),
            },
            3 => match self.pick(&movable) {
                Some(at) => format!("pass({})", self.scope.take(at)),
                None => self.new_value("t"),
            },
            4 => format!("{}.child({name:?})", self.place()),
            5 | 6 => format!("{}.child({name:?})", self.temporary()),
            7 if self.chance(8) => format!("maybe({name:?}, false).unwrap()"),
            _ => self.new_value("t"),
        }
    }

    fn number(&mut self, depth: usize) -> String {
        let numbers = self.scope.numbers();
        let movable = self.scope.movable(THINGS);
        match self.rng.u32(0..16) {
            0 => self.rng.u32(0..5).to_string(),
            1..3 => match self.pick(&numbers) {
                Some(at) => self.scope.get(at).name.clone(),
                None => format!("{}.size()", self.place()),
            },
            3..7 => format!("{}.size()", self.temporary()),
            7 => match self.pick(&movable) {
                Some(at) => format!("take({})", self.scope.take(at)),
                None => format!("take({})", self.new_value("t")),
            },
            8..11 if self.awaits => self.awaited(),
            11 if depth > 0 => format!("{} + {}", self.number(0), self.number(depth - 1)),
            12 if depth > 0 => {
                let condition = self.condition(2);
                let (first, second) = self.sides(|this| this.number(depth - 1));
                format!("if {condition} {{\n{first}\n}} else {{\n{second}\n}}")
            }
            13 if self.chance(6) => format!("{}.fail()", self.temporary()),
            _ => format!("{}.size()", self.place()),
        }
    }

    /// Draws a value of the function's type.
    fn result(&mut self, output: Output) -> String {
        let name = self.name("r");
        match output {
            Output::Unit if self.at_end => format!("{}.touch()", self.temporary()),
            Output::Unit => "()".to_owned(),
            Output::Number => self.number(2),
            Output::D | Output::Opaque => self.value(),
            Output::Option => match self.rng.u32(0..3) {
                0 => format!("{}.optional({name:?}, true)", self.temporary()),
                1 => "None".to_owned(),
                _ => format!("Some({})", self.value()),
            },
            Output::Result => match self.rng.u32(0..4) {
                0 => format!("Err(support::Fault({}))", self.value()),
                1 => format!("fallible({name:?}, {})", self.rng.bool()),
                _ => format!("Ok({})", self.value()),
            },
            Output::Text => format!("{}.name().to_string()", self.temporary()),
            Output::Event => format!("support::Event::Key({})", self.number(2)),
            Output::Events => format!("Some(support::Event::Key({}))", self.number(2)),
            Output::Pair => format!("({}, {})", self.value(), self.number(1)),
            Output::Borrow => self.signature.borrow.clone(),
        }
    }

    /// Draws the last expression of a block.
    fn end(&mut self, output: Output) -> String {
        let at_end = std::mem::replace(&mut self.at_end, true);
        let text = match self.rng.u32(0..24) {
            0..2 => {
                let condition = self.condition(2);
                let (first, second) = self.sides(|this| {
                    let statements = this.nested();
                    statements + &this.result(output)
                });
                format!("if {condition} {{\n{first}\n}} else {{\n{second}\n}}")
            }
            2..4 => {
                let temporary = self.temporary();
                let at = self.rng.u32(1..4);
                let (first, second) = self.sides(|this| this.result(output));
                format!("match {temporary}.size() {{\n{at} => {first},\n_ => {second},\n}}")
            }
            4 => {
                let temporary = self.temporary();
                let (name, some) = (self.name("o"), self.rng.bool());
                let (first, second) = self.sides(|this| this.result(output));
                format!(
                    "if let Some({name}) = {temporary}.optional({name:?}, {some}) {{\n\
                     {name}.touch();\n{first}\n}} else {{\n{second}\n}}"
                )
            }
            5 if output != Output::Opaque && self.chance(3) => "panic!(\"at the end\")".to_owned(),
            6 => format!("return {};", self.result(output)),
            _ => self.result(output),
        };
        self.at_end = at_end;
        text
    }

    /// Draws a future of the function's kind.
    fn future(&mut self) -> String {
        let kind = self.signature.kind;
        let output = self.signature.output;
        let direct = matches!(
            kind,
            Kind::Opaque | Kind::Pinned | Kind::Alias | Kind::Boxed
        );
        let exit = Exit::Value {
            output,
            question: direct,
        };
        let future = if self.ready || !kind.is_opaque() && self.chance(5) {
            let value = self.result(output);
            match self.rng.u32(0..3) {
                0 if !self.ready => format!("echo({value})"),
                _ => format!("std::future::ready({value})"),
            }
        } else {
            self.moving_block(exit, 5)
        };
        match kind {
            Kind::Opaque | Kind::Cloned => future,
            Kind::Unpin => format!("Box::new(Box::pin({future}))"),
            Kind::Boxed => format!("Box::new({future})"),
            _ => format!("Box::pin({future})"),
        }
    }

    /// Draws the last expression of a function that returns a future.
    fn future_end(&mut self) -> String {
        let at_end = std::mem::replace(&mut self.at_end, true);
        let Signature { kind, output, .. } = *self.signature;
        let text = match self.rng.u32(0..10) {
            0 if !kind.is_opaque() || self.ready => {
                let condition = self.condition(2);
                let (first, second) = self.sides(|this| {
                    let statements = this.nested();
                    statements + &this.future()
                });
                format!("if {condition} {{\n{first}\n}} else {{\n{second}\n}}")
            }
            1 if !kind.is_opaque() || self.ready => {
                let temporary = self.temporary();
                let (first, second) = self.sides(Self::future);
                format!("match {temporary}.size() {{\n1 => {first},\n_ => {second},\n}}")
            }
            2 if !kind.is_opaque() && self.chance(3) => "panic!(\"at the end\")".to_owned(),
            // The type of an error would be unknown.
            3 if kind == Kind::Opaque && matches!(output, Output::Number | Output::D) => {
                self.at_end = false;
                let name = self.name("f");
                let future = self.future();
                format!("let {name} = {future};\n{name}")
            }
            _ => self.future(),
        };
        self.at_end = at_end;
        text
    }
}

fn exit_is_unit(exit: Exit) -> bool {
    matches!(
        exit,
        Exit::Value {
            output: Output::Unit,
            ..
        }
    )
}
