//! The variables of a generated body, and what the borrow checker lets the body do with each.
//!
//! The rules are stricter than the compiler's where that is simpler: a guard, for example, borrows
//! its variable to the end of the block, even if it is dropped earlier in a branch.

/// What a variable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// A `D`.
    Value,
    /// Another owner of a `D`, such as a generic parameter or `Box<Self>`.
    Owner,
    /// A `&D`.
    Shared,
    /// A `&mut D`.
    Unique,
    /// A guard with a destructor that borrows another variable.
    Guard,
    /// An `Option<D>`.
    Maybe,
    /// A `usize`.
    Number,
}

#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// The expression for its `D`, such as `self.d`.
    pub(crate) place: String,
    pub(crate) hold: Hold,
    pub(crate) mutable: bool,
    /// A future that the function returns may capture it.
    pub(crate) leaves: bool,
    /// It has been moved on some path.
    gone: bool,
    /// How many guards and references borrow it.
    pins: usize,
    /// The variable that it borrows.
    borrows: Option<usize>,
    /// The number of branches and loops around its declaration.
    level: usize,
}

impl Variable {
    pub(crate) fn new(name: &str, hold: Hold) -> Self {
        Self {
            name: name.to_owned(),
            place: name.to_owned(),
            hold,
            mutable: false,
            leaves: true,
            gone: false,
            pins: 0,
            borrows: None,
            level: 0,
        }
    }

    pub(crate) fn place(self, place: &str) -> Self {
        let place = place.to_owned();
        Self { place, ..self }
    }

    pub(crate) fn mutable(self, mutable: bool) -> Self {
        Self { mutable, ..self }
    }

    /// Marks it as a reference to something that the function owns.
    pub(crate) fn stays(self) -> Self {
        let leaves = false;
        Self { leaves, ..self }
    }

    pub(crate) fn borrowing(self, from: usize) -> Self {
        let borrows = Some(from);
        Self { borrows, ..self }
    }

    fn is_copy(&self) -> bool {
        matches!(self.hold, Hold::Shared | Hold::Number)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    variables: Vec<Variable>,
    /// The first variable of the innermost block.
    block: usize,
    /// Variables before this one are outside of a loop and cannot be moved.
    fixed: usize,
    /// Variables before this one are captured by reference and can only be read.
    frozen: usize,
    level: usize,
    /// Variables that temporaries of the current statement borrow.
    temporaries: Vec<usize>,
}

/// What to restore at the end of a block.
pub(crate) struct Outer {
    length: usize,
    block: usize,
    fixed: usize,
    frozen: usize,
}

impl Scope {
    pub(crate) fn of_parameters(parameters: &[Variable]) -> Self {
        Self {
            variables: parameters.to_vec(),
            block: parameters.len(),
            ..Self::default()
        }
    }

    pub(crate) fn get(&self, at: usize) -> &Variable {
        &self.variables[at]
    }

    pub(crate) fn add(&mut self, variable: Variable) {
        if let Some(borrowed) = variable.borrows {
            self.variables[borrowed].pins += 1;
        }
        let level = self.level;
        self.variables.push(Variable { level, ..variable });
    }

    fn usable(&self) -> impl Iterator<Item = (usize, &Variable)> {
        let all = self.variables.iter().enumerate();
        all.filter(|(at, variable)| {
            let mut later = self.variables[at + 1..].iter();
            !variable.gone && later.all(|other| other.name != variable.name)
        })
    }

    /// Returns the variables that hold a `D` to read.
    pub(crate) fn readable(&self) -> Vec<usize> {
        self.of(|variable| !matches!(variable.hold, Hold::Maybe | Hold::Number))
    }

    /// Returns the variables that a temporary of the block's last expression may borrow. Before
    /// edition 2024, it is dropped after the variables of the block.
    pub(crate) fn readable_at_end(&self, edition: u16) -> Vec<usize> {
        let mut readable = self.readable();
        readable.retain(|at| edition >= 2024 || *at < self.block);
        readable
    }

    pub(crate) fn numbers(&self) -> Vec<usize> {
        self.of(|variable| variable.hold == Hold::Number)
    }

    pub(crate) fn changeable(&self) -> Vec<usize> {
        let mut found = self.of(|variable| {
            let changes = variable.mutable && matches!(variable.hold, Hold::Value | Hold::Owner);
            variable.pins == 0 && (changes || variable.hold == Hold::Unique)
        });
        found.retain(|at| *at >= self.frozen);
        found
    }

    /// Returns the variables of these kinds that can be moved.
    pub(crate) fn movable(&self, holds: &[Hold]) -> Vec<usize> {
        let mut found = self.of(|variable| variable.pins == 0 && holds.contains(&variable.hold));
        found.retain(|at| *at >= self.frozen.max(self.fixed));
        found
    }

    fn of(&self, accepts: impl Fn(&Variable) -> bool) -> Vec<usize> {
        let found = self.usable().filter(|(_, variable)| accepts(variable));
        found.map(|(at, _)| at).collect()
    }

    pub(crate) fn take(&mut self, at: usize) -> String {
        let level = self.level;
        let variable = &mut self.variables[at];
        variable.gone = true;
        let name = variable.name.clone();
        if variable.level == level
            && let Some(borrowed) = variable.borrows.take()
        {
            self.variables[borrowed].pins -= 1;
        }
        name
    }

    /// Notes that a temporary of the current statement borrows a variable.
    pub(crate) fn borrow(&mut self, at: usize) -> String {
        self.variables[at].pins += 1;
        self.temporaries.push(at);
        self.variables[at].place.clone()
    }

    /// Returns the temporaries of the statement around the one that begins.
    pub(crate) fn begin_statement(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.temporaries)
    }

    pub(crate) fn end_statement(&mut self, around: Vec<usize>) {
        for at in std::mem::replace(&mut self.temporaries, around) {
            self.variables[at].pins -= 1;
        }
    }

    /// Begins a block that may not run, or runs more than once if `repeats`.
    pub(crate) fn enter(&mut self, repeats: bool, by_reference: bool) -> Outer {
        let length = self.variables.len();
        let outer = Outer {
            length,
            block: self.block,
            fixed: self.fixed,
            frozen: self.frozen,
        };
        self.level += 1;
        self.block = length;
        if repeats {
            self.fixed = length;
        }
        if by_reference {
            self.frozen = length;
        }
        outer
    }

    pub(crate) fn leave(&mut self, outer: &Outer) {
        self.level -= 1;
        self.block = outer.block;
        self.fixed = outer.fixed;
        self.frozen = outer.frozen;
        for variable in self.variables.split_off(outer.length) {
            let borrowed = variable.borrows.and_then(|at| self.variables.get_mut(at));
            if let Some(borrowed) = borrowed {
                borrowed.pins -= 1;
            }
        }
        self.temporaries.retain(|at| *at < outer.length);
    }

    /// Returns the usable variables as those which a future or closure captures by value.
    pub(crate) fn captured(&self, mut accepts: impl FnMut(&Variable) -> bool) -> Self {
        let free = |at: usize| at >= self.frozen.max(self.fixed);
        let captured = self.usable().filter(|(at, variable)| {
            accepts(variable) && (variable.is_copy() || variable.pins == 0 && free(*at))
        });
        let mut captured: Vec<Variable> = captured.map(|(_, variable)| variable.clone()).collect();
        for variable in &mut captured {
            variable.borrows = None;
            variable.pins = 0;
            variable.level = 0;
        }
        Self::of_parameters(&captured)
    }

    /// Marks the variables that were captured by value as moved.
    pub(crate) fn lose(&mut self, captured: &Self) {
        for variable in &captured.variables {
            let name = &variable.name;
            let mut mine = self.variables.iter_mut().rev();
            if let Some(lost) = mine.find(|mine| mine.name == *name && !mine.is_copy()) {
                lost.gone = true;
            }
        }
    }

    /// Returns which variables are gone, to compare the branches of an expression.
    pub(crate) fn gone(&self) -> Vec<bool> {
        let gone = self.variables.iter().map(|variable| variable.gone);
        gone.collect()
    }

    pub(crate) fn set_gone(&mut self, gone: &[bool]) {
        for (variable, gone) in self.variables.iter_mut().zip(gone) {
            variable.gone = *gone;
        }
    }
}
