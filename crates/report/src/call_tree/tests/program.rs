//! Random programs, and what a call tree must say of them. The statistics of the runtime are compared with them too.

use std::collections::HashMap;

use proptest::prelude::*;

use super::{CallTree, EdgeTimes};

/// Calls, primitive calls, and their total and self time.
type Counts = (u64, u64, f64, f64);

/// One call of a random program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) name: usize,
    pub(super) parent: Option<u32>,
    pub(super) total: i64,
    pub(super) own: i64,
}

pub(super) const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// Returns the calls of a random program of so many functions in the order in which they begin, at most forty deep. In
/// each instant one call has self time.
pub(super) fn program(
    functions: usize,
    calls: std::ops::Range<usize>,
) -> impl Strategy<Value = Vec<Call>> {
    // For each call: how many of the calls around it end first, and its name.
    let calls = proptest::collection::vec((0..3_usize, 0..functions), calls);
    calls.prop_map(|calls| {
        let mut open: Vec<u32> = Vec::new();
        let mut program: Vec<Call> = Vec::new();
        for (index, (left, name)) in (0..).zip(calls) {
            open.truncate(open.len().saturating_sub(left).min(39));
            let parent = open.last().copied();
            if let Some(parent) = parent {
                program[parent as usize].own += 2;
            }
            for around in &open {
                program[*around as usize].total += 5;
            }
            let (total, own) = (3, 3);
            program.push(Call {
                name,
                parent,
                total,
                own,
            });
            open.push(index);
        }
        program
    })
}

/// The functions and edges of a program, found without a tree: each call looks at all calls around it.
pub(super) struct Model {
    functions: HashMap<usize, Counts>,
    edges: HashMap<(Option<usize>, usize), Counts>,
}

impl Model {
    pub(super) fn of(program: &[Call]) -> Self {
        let mut model = Self {
            functions: HashMap::new(),
            edges: HashMap::new(),
        };
        let edge = |call: &Call| (call.parent.map(|at| program[at as usize].name), call.name);
        for call in program {
            let caller = |call: &&Call| call.parent.map(|at| &program[at as usize]);
            let around: Vec<&Call> = std::iter::successors(Some(call), caller).skip(1).collect();
            let count = |counts: &mut Counts, is_primitive: bool| {
                counts.0 += 1;
                counts.1 += u64::from(is_primitive);
                counts.2 += if is_primitive { call.total as f64 } else { 0.0 };
                counts.3 += call.own as f64;
            };
            let is_primitive = around.iter().all(|other| other.name != call.name);
            count(model.functions.entry(call.name).or_default(), is_primitive);
            let is_primitive = around.iter().all(|other| edge(other) != edge(call));
            count(model.edges.entry(edge(call)).or_default(), is_primitive);
        }
        model
    }

    /// Checks a tree whose functions are called as `number` says, in times of `unit` nanoseconds.
    pub(super) fn check(
        &self,
        tree: &CallTree,
        number: impl Fn(&str) -> Option<usize>,
        unit: f64,
    ) -> Result<(), TestCaseError> {
        let near =
            |found: f64, expected: f64| (found - expected * unit).abs() < 1e-6 * (1.0 + found);
        let check = |found: (u64, u64, EdgeTimes), expected: &Counts| {
            prop_assert_eq!((found.0, found.1), (expected.0, expected.1));
            prop_assert!(
                near(found.2.total_ns, expected.2),
                "{:?} {:?}",
                found,
                expected
            );
            prop_assert!(
                near(found.2.self_ns, expected.3),
                "{:?} {:?}",
                found,
                expected
            );
            Ok(())
        };
        let mut functions = 0;
        for function in tree.functions() {
            if let Some(name) = number(&function.name) {
                let found = (
                    function.calls,
                    function.primitive_calls,
                    function.cpu.unwrap(),
                );
                check(found, &self.functions[&name])?;
                functions += 1;
            }
        }
        prop_assert_eq!(functions, self.functions.len());
        let mut edges = 0;
        for edge in tree.edges() {
            if let Some(name) = number(&edge.callee) {
                let caller = edge.caller.as_deref().map(|caller| number(caller).unwrap());
                let found = (edge.calls, edge.primitive_calls, edge.cpu.unwrap());
                check(found, &self.edges[&(caller, name)])?;
                edges += 1;
            }
        }
        prop_assert_eq!(edges, self.edges.len());
        for (index, node) in (0..).zip(&tree.nodes) {
            prop_assert!(node.parent.is_none_or(|parent| parent < index));
            prop_assert_eq!(tree.path(index).last().copied(), Some(index));
        }
        Ok(())
    }
}
