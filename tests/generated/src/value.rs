//! Draws the expressions of a body.

use crate::body::{Body, Exit, THINGS};
use crate::scope::Hold;
use crate::signature::{Kind, Output};

impl Body<'_> {
    pub(crate) fn new_value(&mut self, prefix: &str) -> String {
        let name = self.name(prefix);
        format!("D::new({name:?})")
    }

    /// Moves a variable of one of these kinds, or creates a value.
    pub(crate) fn taken(&mut self, holds: &[Hold]) -> String {
        match self.pick(&self.scope.movable(holds)) {
            Some(at) => self.scope.take(at),
            None => self.new_value("t"),
        }
    }

    /// Returns the place of a variable that only this expression reads.
    pub(crate) fn place(&mut self) -> String {
        match self.pick(&self.scope.readable()) {
            Some(at) => self.scope.get(at).place.clone(),
            None => self.new_value("t"),
        }
    }

    /// Draws a temporary with a destructor, which may be a guard of a variable.
    pub(crate) fn temporary(&mut self) -> String {
        let readable = if self.at_end {
            self.scope.readable_at_end(self.edition)
        } else {
            self.scope.readable()
        };
        match self.pick(&readable) {
            Some(at) if !self.chance(4) => format!("{}.lock()", self.scope.borrow(at)),
            _ => self.new_value("t"),
        }
    }

    pub(crate) fn flip(&mut self, of: u32) -> String {
        let (name, value) = (self.name("if"), self.chance(of));
        format!("flip({name:?}, {value})")
    }

    pub(crate) fn condition(&mut self, of: u32) -> String {
        if !self.chance(4) {
            return self.flip(of);
        }
        // The temporaries of a condition are dropped before the block.
        let around = self.scope.begin_statement();
        let temporary = self.temporary();
        self.scope.end_statement(around);
        format!("{temporary}.size() > 2")
    }

    /// Draws the two sides of a branch. A variable that one of them moves is moved afterwards.
    pub(crate) fn sides(&mut self, mut draw: impl FnMut(&mut Self) -> String) -> (String, String) {
        let mut side = |this: &mut Self| {
            let outer = this.scope.enter(false, false);
            let text = draw(this);
            this.scope.leave(&outer);
            text
        };
        let before = self.scope.gone();
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

    /// Draws an `if` with an `else`.
    pub(crate) fn fork(&mut self, draw: impl FnMut(&mut Self) -> String) -> String {
        let condition = self.condition(2);
        let (first, second) = self.sides(draw);
        format!("if {condition} {{\n{first}\n}} else {{\n{second}\n}}")
    }

    /// Draws an expression that awaits a number.
    pub(crate) fn awaited(&mut self) -> String {
        let (name, pending) = (self.name("w"), self.rng.u32(0..3));
        match self.rng.u32(0..6) {
            0 => format!("wait!(later({name:?}, {pending}))"),
            1 => format!("{}.work({name:?}, {pending}).await", self.place()),
            2 => format!("{}.work({name:?}, {pending}).await", self.temporary()),
            3 => {
                let thing = self.taken(&[Hold::Value, Hold::Owner]);
                format!("consume({thing}, {pending}).await")
            }
            _ => format!("later({name:?}, {pending}).await"),
        }
    }

    /// Draws a `D`.
    pub(crate) fn value(&mut self) -> String {
        let name = self.name("t");
        match self.rng.u32(0..9) {
            0..3 => self.taken(&[Hold::Value]),
            3 => format!("pass({})", self.taken(&[Hold::Value])),
            4 => format!("{}.child({name:?})", self.place()),
            5 | 6 => format!("{}.child({name:?})", self.temporary()),
            7 if self.chance(8) => format!("maybe({name:?}, false).unwrap()"),
            _ => format!("D::new({name:?})"),
        }
    }

    pub(crate) fn number(&mut self, depth: usize) -> String {
        match self.rng.u32(0..16) {
            0 => self.rng.u32(0..5).to_string(),
            1..3 => match self.pick(&self.scope.numbers()) {
                Some(at) => self.scope.get(at).name.clone(),
                None => format!("{}.size()", self.place()),
            },
            3..7 => format!("{}.size()", self.temporary()),
            7 => format!("take({})", self.taken(THINGS)),
            8..11 if self.awaits => self.awaited(),
            // An `if` on the left would be a statement.
            11 if depth > 0 => format!("{} + {}", self.number(0), self.number(depth - 1)),
            12 if depth > 0 => self.fork(|this| this.number(depth - 1)),
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
            // Items of the body may have the names of the types.
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

    /// Draws a future of the function's kind.
    fn future(&mut self) -> String {
        let (kind, output) = (self.signature.kind, self.signature.output);
        // Elsewhere, the compiler does not know the type of the block yet.
        let question = matches!(
            kind,
            Kind::Opaque | Kind::Pinned | Kind::Alias | Kind::Boxed
        );
        let future = if self.ready {
            format!("std::future::ready({})", self.result(output))
        } else if !kind.is_opaque() && self.chance(5) {
            format!("echo({})", self.result(output))
        } else {
            self.moving_block(Exit::Value { output, question }, 5)
        };
        match kind {
            Kind::Opaque | Kind::Cloned => future,
            Kind::Unpin => format!("Box::new(Box::pin({future}))"),
            Kind::Boxed => format!("Box::new({future})"),
            _ => format!("Box::pin({future})"),
        }
    }

    /// Draws the value with which the block is left.
    pub(crate) fn last(&mut self) -> String {
        match self.exit {
            Exit::Closed => "()".to_owned(),
            Exit::Value { output, .. } => self.result(output),
            Exit::Future => self.future(),
        }
    }

    /// Returns `true` if the block may be left in two places.
    pub(crate) fn forks(&self) -> bool {
        match self.exit {
            Exit::Closed => false,
            Exit::Value { .. } => true,
            Exit::Future => self.ready || !self.signature.kind.is_opaque(),
        }
    }

    /// Draws the last expression of a block.
    pub(crate) fn end(&mut self) -> String {
        let forks = self.forks();
        let (kind, output) = (self.signature.kind, self.signature.output);
        let future = matches!(self.exit, Exit::Future);
        // `!` is no future, and has no type that is to be inferred.
        let named = if future {
            !kind.is_opaque()
        } else {
            output != Output::Opaque
        };
        let at_end = std::mem::replace(&mut self.at_end, true);
        let name = self.name("o");
        let text = match self.rng.u32(0..24) {
            0..2 if forks => self.fork(|this| this.nested() + &this.last()),
            2..4 if forks => {
                let temporary = self.temporary();
                let (first, second) = self.sides(Self::last);
                format!("match {temporary}.size() {{\n2 => {first},\n_ => {second},\n}}")
            }
            4 if forks => {
                let (temporary, some) = (self.temporary(), self.rng.bool());
                let (first, second) = self.sides(Self::last);
                format!(
                    "if let Some({name}) = {temporary}.optional({name:?}, {some}) {{\n\
                     {name}.touch();\n{first}\n}} else {{\n{second}\n}}"
                )
            }
            5 if named && self.chance(3) => "panic!(\"at the end\")".to_owned(),
            6 => {
                self.at_end = false;
                format!("return {};", self.last())
            }
            7..9 if kind == Kind::Opaque && matches!(output, Output::Number | Output::D) => {
                self.at_end = false;
                format!("let {name} = {};\n{name}", self.last())
            }
            _ => self.last(),
        };
        self.at_end = at_end;
        text
    }
}
