//! Draws the statements of a body, which the compiler accepts where they stand.

use fastrand::Rng;

use crate::scope::{Hold, Scope, Variable};
use crate::signature::{Kind, Output, Signature};

/// How the statements of a block may leave it.
#[derive(Clone, Copy)]
pub(crate) enum Exit {
    /// Not at all: the body of a closure.
    Closed,
    /// With a value, and by `?` if the type of the error is known.
    Value { output: Output, question: bool },
    /// With a future of the function's kind.
    Future,
}

#[expect(clippy::struct_excessive_bools, reason = "all combinations occur")]
pub(crate) struct Body<'a> {
    pub(crate) rng: &'a mut Rng,
    pub(crate) edition: u16,
    pub(crate) signature: &'a Signature,
    pub(crate) scope: Scope,
    pub(crate) exit: Exit,
    pub(crate) awaits: bool,
    /// The expression is the last one of a block.
    pub(crate) at_end: bool,
    /// All futures that the function returns are created by `ready`, and have one type.
    pub(crate) ready: bool,
    /// The innermost block is in a loop that ends even if it is always continued.
    loops: bool,
    has_item: bool,
    depth: usize,
    serial: usize,
}

/// Kinds of variables that are moved into functions.
pub(crate) const THINGS: &[Hold] = &[Hold::Value, Hold::Owner, Hold::Guard];

const ITEMS: &[&str] = &[
    "use support::other::Event;\nshow(&Event::Mouse);",
    "use support::other::Fault;\nshow(&Fault);",
    "#[derive(Debug)]\nenum Event {\nMouse,\n}\nshow(&Event::Mouse);",
    "type Fault = usize;\nlet fault: Fault = 3;\nlog(fault);",
    "type Result<T> = std::result::Result<T, usize>;\nlet fine: Result<usize> = Ok(1);\nshow(&fine);",
    "#[derive(Debug)]\nstruct Option;\nshow(&Option);",
    "#[derive(Debug)]\nstruct String;\nshow(&String);",
    "const LIMIT: usize = 3;\nlog(LIMIT);",
    "fn helper(x: usize) -> usize {\nx + 1\n}\nlog(helper(1));",
    "trait Future {\nfn now(&self) -> usize;\n}\nimpl Future for usize {\nfn now(&self) -> usize {\n\
     *self\n}\n}\nlog(Future::now(&3_usize));",
];

/// Draws the body of a function, with its braces.
pub(crate) fn draw(rng: &mut Rng, edition: u16, signature: &Signature) -> String {
    let output = signature.output;
    let future = signature.kind.returns_future();
    let question = true;
    let value = Exit::Value { output, question };
    let mut body = Body {
        edition,
        signature,
        scope: Scope::of_parameters(&signature.variables),
        exit: if future { Exit::Future } else { value },
        awaits: signature.kind == Kind::Async,
        at_end: false,
        ready: signature.kind == Kind::Cloned || rng.u32(0..5) == 0,
        loops: false,
        has_item: false,
        depth: 0,
        serial: 0,
        rng,
    };
    let allowed = body.chance(12);
    let attribute = if allowed {
        "#![allow(unused_variables)]\n"
    } else {
        ""
    };
    let block = body.block(if future { 3 } else { 6 });
    format!("{{\n{attribute}{block}}}")
}

impl Body<'_> {
    /// Draws statements and the last expression of the block that is the body of a function or of
    /// an `async` block.
    pub(crate) fn block(&mut self, most: usize) -> String {
        let statements = self.statements(most);
        let unit = matches!(
            self.exit,
            Exit::Value {
                output: Output::Unit,
                ..
            }
        );
        let end = self.end();
        let semicolon = if unit && self.rng.bool() { ";" } else { "" };
        format!("{statements}{end}{semicolon}\n")
    }

    fn statements(&mut self, most: usize) -> String {
        let at_end = std::mem::replace(&mut self.at_end, false);
        let mut text = String::new();
        for _ in 0..self.rng.usize(0..=most) {
            let around = self.scope.begin_statement();
            self.depth += 1;
            let statement = self.statement();
            text += &statement.unwrap_or_else(|| format!("{}.touch();", self.place()));
            self.depth -= 1;
            self.scope.end_statement(around);
            text.push('\n');
        }
        self.at_end = at_end;
        text
    }

    pub(crate) fn nested(&mut self) -> String {
        self.statements(if self.depth < 3 { 2 } else { 1 })
    }

    /// Draws a statement. Returns `None` if no variable can be used as it needs one.
    fn statement(&mut self) -> Option<String> {
        let deep = self.depth > 3;
        match self.rng.u32(0..44) {
            0..7 => Some(self.local()),
            7..10 => self.borrowed(),
            10..12 => Some(format!("{}.touch();", self.temporary())),
            12..14 => {
                let changed = self.pick(&self.scope.changeable())?;
                Some(format!("{}.change();", self.scope.get(changed).place))
            }
            14..18 => self.moved(),
            18..22 if !deep => self.branch(),
            22..25 if !deep => Some(self.repeated()),
            25..27 => Some(self.closure()),
            27..30 if self.awaits && !deep => Some(self.inner_future()),
            30..33 if self.awaits => Some(format!("show(&{});", self.awaited())),
            33..35 => self.question(),
            35..37 => self.left(),
            37..39 => Some(self.of_std()),
            39 => Some(self.panics()),
            40 | 41 if self.depth == 1 => Some(self.item()),
            42 => Some("log(std::panic::Location::caller().line());".to_owned()),
            _ => None,
        }
    }

    fn local(&mut self) -> String {
        let name = self.name("v");
        let variable = |hold| Variable::new(&name, hold);
        match self.rng.u32(0..10) {
            0..3 => {
                let value = self.value();
                self.scope.add(variable(Hold::Value));
                format!("let {name} = {value};")
            }
            3 => {
                let value = self.value();
                self.scope.add(variable(Hold::Value).mutable(true));
                format!("let mut {name} = {value};\n{name}.change();")
            }
            4 => {
                let (left, right) = (self.value(), self.value());
                let other = self.name("v");
                self.scope.add(variable(Hold::Value));
                self.scope.add(Variable::new(&other, Hold::Value));
                format!("let ({name}, {other}) = ({left}, {right});")
            }
            5 => format!("let _{name} = {};", self.value()),
            6 => format!("let _ = {};", self.temporary()),
            7 => {
                let some = self.rng.bool();
                self.scope.add(variable(Hold::Maybe));
                format!("let {name} = maybe({name:?}, {some});")
            }
            _ => {
                let number = self.number(2);
                self.scope.add(variable(Hold::Number));
                format!("let {name} = {number};")
            }
        }
    }

    /// Draws a local that borrows another variable, or has its name.
    fn borrowed(&mut self) -> Option<String> {
        let name = self.name("v");
        let roll = self.rng.u32(0..4);
        let at = match roll {
            0 => self.pick(&self.scope.movable(&[Hold::Value]))?,
            _ => self.pick(&self.scope.readable())?,
        };
        let Variable {
            name: from, place, ..
        } = self.scope.get(at).clone();
        let borrows = |hold| Variable::new(&name, hold).borrowing(at).stays();
        Some(match roll {
            0 => {
                self.scope.add(borrows(Hold::Shared));
                if self.rng.bool() {
                    format!("let {name} = &{from};")
                } else {
                    format!("let ref {name} = {from};")
                }
            }
            1 if from != "self" => {
                self.scope.add(Variable::new(&from, Hold::Value));
                format!("let {from} = {place}.child({name:?});")
            }
            _ => {
                self.scope.add(borrows(Hold::Guard));
                format!("let {name} = {place}.lock();")
            }
        })
    }

    /// Moves a variable, on one path or on all.
    fn moved(&mut self) -> Option<String> {
        let at = self.pick(&self.scope.movable(THINGS))?;
        let partly = self.scope.get(at).place == "self.d" && self.signature.owns_self();
        let condition = self.rng.bool().then(|| self.flip(2));
        // A guard that is dropped on one path still borrows on the other.
        let branch = condition.is_some().then(|| self.scope.enter(false, false));
        let name = self.scope.take(at);
        if let Some(branch) = branch {
            self.scope.leave(&branch);
        }
        let moved = match self.rng.u32(0..3) {
            0 if partly => "take(self.d);".to_owned(),
            0 => format!("take({name});"),
            1 => format!("drop({name});"),
            _ => format!("drop(pass({name}));"),
        };
        Some(match condition {
            Some(condition) => format!("if {condition} {{\n{moved}\n}}"),
            None => moved,
        })
    }

    fn branch(&mut self) -> Option<String> {
        let (name, some) = (self.name("o"), self.rng.bool());
        // As the last expression of a block, a branch would keep its temporaries longer than the
        // variables of the block.
        let end = if self.edition < 2024 { ";" } else { "" };
        Some(match self.rng.u32(0..6) {
            0 | 1 => self.fork(Self::nested),
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
                format!("match {number} {{\n2 => {{\n{first}}}\n_ => {{\n{second}}}\n}}{end}")
            }
            4 => {
                let temporary = self.temporary();
                let (first, second) = self.sides(Self::nested);
                format!(
                    "if let Some({name}) = {temporary}.optional({name:?}, {some}) {{\n\
                     {name}.touch();\n{first}}} else {{\n{second}}}{end}"
                )
            }
            _ => {
                let maybe = self.pick(&self.scope.movable(&[Hold::Maybe]))?;
                let taken = self.scope.take(maybe);
                let (first, second) = self.sides(Self::nested);
                format!(
                    "match {taken} {{\nSome({name}) => {{\n{name}.touch();\n{first}}}\n\
                     None => {{\n{second}}}\n}}"
                )
            }
        })
    }

    fn repeated(&mut self) -> String {
        let label = if self.chance(3) {
            self.name("'l")
        } else {
            String::new()
        };
        let colon = if label.is_empty() { "" } else { ": " };
        let to = format!(" {label}");
        let to = to.trim_end();
        let counts = !self.chance(3);
        let outer = self.scope.enter(true, false);
        let loops = std::mem::replace(&mut self.loops, counts);
        let inside = self.nested();
        self.loops = loops;
        self.scope.leave(&outer);
        let (name, ends) = (self.name("v"), self.name("if"));
        if !counts {
            self.scope.add(Variable::new(&name, Hold::Value));
            return format!(
                "let {name} = {label}{colon}loop {{\nlet value = D::new({name:?});\n{inside}\
                 if flip({ends:?}, true) {{\nbreak{to} value;\n}}\n}};"
            );
        }
        let times = self.rng.u32(1..4);
        let leaving = match self.rng.u32(0..3) {
            0 => format!("if {name} == 1 {{\nbreak{to};\n}}\n"),
            1 => format!("if {name} == 0 {{\ncontinue{to};\n}}\n"),
            _ => String::new(),
        };
        format!("{label}{colon}for {name} in 0..{times} {{\nlog({name});\n{leaving}{inside}}}")
    }

    /// Draws in a block of its own, with other ways to leave it.
    fn inside<T>(&mut self, exit: Exit, awaits: bool, draw: impl FnOnce(&mut Self) -> T) -> T {
        let exit = std::mem::replace(&mut self.exit, exit);
        let awaits = std::mem::replace(&mut self.awaits, awaits);
        let loops = std::mem::take(&mut self.loops);
        let at_end = std::mem::take(&mut self.at_end);
        let drawn = draw(self);
        (self.exit, self.awaits, self.loops, self.at_end) = (exit, awaits, loops, at_end);
        drawn
    }

    fn closure(&mut self) -> String {
        let name = self.name("f");
        if self.rng.bool() {
            let moved = self.taken(THINGS);
            let [before, after] = if self.rng.bool() {
                ["log(", "())"]
            } else {
                ["drop(", ")"]
            };
            return format!("let {name} = move || take({moved});\n{before}{name}{after};");
        }
        let outer = self.scope.enter(true, true);
        let statements = self.inside(Exit::Closed, false, Self::nested);
        let place = self.place();
        self.scope.leave(&outer);
        format!("let {name} = |x: usize| {{\n{statements}x + {place}.size()\n}};\nlog({name}(1));")
    }

    /// Draws an `async` block that gives a number.
    fn inner_future(&mut self) -> String {
        let (name, future) = (self.name("v"), self.name("f"));
        let exit = Exit::Value {
            output: Output::Number,
            question: false,
        };
        let block = if self.rng.bool() {
            let outer = self.scope.enter(true, true);
            let block = self.inside(exit, true, |this| this.block(2));
            self.scope.leave(&outer);
            format!("async {{\n{block}}}")
        } else {
            self.moving_block(exit, 2)
        };
        let awaited = match self.rng.u32(0..4) {
            0 => return format!("drop({block});"),
            1 => format!("let {name} = {block}.await;"),
            _ => {
                let between = self.new_value("t");
                format!("let {future} = {block};\n{between}.touch();\nlet {name} = {future}.await;")
            }
        };
        self.scope.add(Variable::new(&name, Hold::Number));
        awaited
    }

    /// Draws an `async move` block. One that the function returns captures all that it can.
    pub(crate) fn moving_block(&mut self, exit: Exit, most: usize) -> String {
        let leaves = matches!(self.exit, Exit::Future);
        let mut stays = self.rng.bool();
        let captured = self.scope.captured(|variable| {
            stays = !stays;
            let owned = matches!(variable.hold, Hold::Value | Hold::Owner | Hold::Maybe);
            if leaves {
                variable.leaves
            } else {
                owned && !stays
            }
        });
        self.scope.lose(&captured);
        let scope = std::mem::replace(&mut self.scope, captured);
        let block = self.inside(exit, true, |this| this.block(most));
        self.scope = scope;
        format!("async move {{\n{block}}}")
    }

    fn question(&mut self) -> Option<String> {
        let function = match self.exit {
            Exit::Value {
                output: Output::Result,
                question: true,
            } => "fallible",
            Exit::Value {
                output: Output::Option | Output::Events,
                question: true,
            } => "maybe",
            _ => return self.left(),
        };
        let (name, good) = (self.name("v"), !self.chance(4));
        self.scope.add(Variable::new(&name, Hold::Value));
        Some(format!("let {name} = {function}({name:?}, {good})?;"))
    }

    /// Leaves the function, a loop, or the block early.
    fn left(&mut self) -> Option<String> {
        let condition = self.condition(4);
        if self.loops && self.rng.bool() {
            let keyword = if self.rng.bool() { "break" } else { "continue" };
            return Some(format!("if {condition} {{\n{keyword};\n}}"));
        }
        let forks = self.forks();
        let outer = self.scope.enter(false, false);
        let around = self.scope.begin_statement();
        let gone = self.scope.gone();
        let value = forks.then(|| self.last());
        // What follows runs only if the function was not left.
        self.scope.set_gone(&gone);
        self.scope.end_statement(around);
        self.scope.leave(&outer);
        let value = value?;
        let name = self.name("v");
        Some(match self.rng.u32(0..14) {
            0..2 => format!("leave_if!({condition}, {value});"),
            2 | 3 => format!("info!({condition}, {value});"),
            4 => {
                let (temporary, some) = (self.temporary(), !self.chance(4));
                format!(
                    "let Some({name}) = {temporary}.optional({name:?}, {some}) else {{\n\
                     return {value};\n}};\n{name}.touch();"
                )
            }
            5 => format!(
                "macro_rules! {name} {{\n($value:expr) => {{\nreturn $value\n}};\n}}\n\
                 if {condition} {{\n{name}!({value});\n}}"
            ),
            _ => format!("if {condition} {{\nreturn {value};\n}}"),
        })
    }

    fn of_std(&mut self) -> String {
        let name = self.name("s");
        let temporary = self.temporary();
        match self.rng.u32(0..5) {
            0 => format!("assert!({temporary}.size() > 0);"),
            1 => format!("assert_eq!({temporary}.size(), {}.size());", self.place()),
            2 => format!("let {name} = format!(\"{{:?}}\", {temporary}.name());\nlog({name});"),
            3 => format!(
                "let {name} = vec![{}, {}];\nshow(&{name});",
                self.value(),
                self.value()
            ),
            _ => format!("log(format_args!(\"{{}}\", {temporary}.name()));"),
        }
    }

    fn panics(&mut self) -> String {
        let (name, some) = (self.name("v"), self.rng.bool());
        match self.rng.u32(0..5) {
            0 => format!("assert!({}, \"must hold\");", self.flip(2)),
            1 => format!("log({}.fail());", self.temporary()),
            2 => format!("let _{name} = maybe({name:?}, {some}).unwrap();"),
            _ => format!("if {} {{\npanic!(\"here\");\n}}", self.condition(2)),
        }
    }

    /// Draws an item with the name of something outside, or that looks like it.
    fn item(&mut self) -> String {
        let item = ITEMS[self.rng.usize(..ITEMS.len())];
        // A block may declare a name once.
        if std::mem::replace(&mut self.has_item, true) || self.chance(4) {
            return format!("{{\n{item}\n}}");
        }
        item.to_owned()
    }

    pub(crate) fn chance(&mut self, of: u32) -> bool {
        self.rng.u32(0..of) == 0
    }

    pub(crate) fn pick(&mut self, from: &[usize]) -> Option<usize> {
        self.rng.choice(from).copied()
    }

    /// Returns a name that is new in the function.
    pub(crate) fn name(&mut self, prefix: &str) -> String {
        self.serial += 1;
        format!("{prefix}{}", self.serial)
    }
}
