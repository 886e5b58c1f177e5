//! Measures methods: single methods, a whole `impl` block, trait methods, generic and recursive
//! functions.
//!
//! ```text
//! cargo run --release --example methods_and_impl_blocks
//! ```

use profiler_examples::random::Random;
use profiler_runtime::report::{SortKey, TableOptions};
use profiler_runtime::{measure_execution_time, summary};

/// A binary search tree.
#[derive(Default)]
struct Tree<T> {
    root: Option<Box<Node<T>>>,
    len: usize,
}

struct Node<T> {
    value: T,
    left: Option<Box<Node<T>>>,
    right: Option<Box<Node<T>>>,
}

// On an `impl` block, the attribute measures every method under its own name, `Tree::insert` and
// so on.
#[measure_execution_time]
impl<T: Ord> Tree<T> {
    // A `const fn` may run in the compiler, where there is no clock, so it is not measured.
    const fn new() -> Self {
        Self { root: None, len: 0 }
    }

    fn insert(&mut self, value: T) {
        let mut place = &mut self.root;
        while let Some(node) = place {
            place = if value < node.value {
                &mut node.left
            } else {
                &mut node.right
            };
        }
        *place = Some(Box::new(Node {
            value,
            left: None,
            right: None,
        }));
        self.len += 1;
    }

    // A method's own arguments override those of the block.
    #[measure_execution_time(name = "search the tree")]
    fn contains(&self, value: &T) -> bool {
        let mut place = &self.root;
        while let Some(node) = place {
            if *value == node.value {
                return true;
            }
            place = if *value < node.value {
                &node.left
            } else {
                &node.right
            };
        }
        false
    }

    // Too short to measure: measuring would take longer than the method.
    #[measure_execution_time(skip)]
    fn len(&self) -> usize {
        self.len
    }

    fn depth(&self) -> usize {
        depth(self.root.as_deref())
    }
}

// For a recursive function, the table shows `Calls` as all/outermost, and the total counts nested
// calls once.
#[measure_execution_time]
fn depth<T>(node: Option<&Node<T>>) -> usize {
    node.map_or(0, |node| {
        1 + depth(node.left.as_deref()).max(depth(node.right.as_deref()))
    })
}

/// A collection of numbers.
trait Numbers {
    fn add(&mut self, value: u64);

    // A default method has one name for all types that do not override it.
    #[measure_execution_time]
    fn fill(&mut self, count: usize) {
        let mut random = Random::seeded(1);
        for _ in 0..count {
            self.add(random.below(1 << 40) as u64);
        }
    }
}

impl Numbers for Tree<u64> {
    fn add(&mut self, value: u64) {
        self.insert(value);
    }
}

impl Numbers for Vec<u64> {
    // A method of a trait's `impl` is named after both: `alloc::vec::Vec<u64>::Numbers::add`.
    #[measure_execution_time]
    fn add(&mut self, value: u64) {
        let place = self.partition_point(|&other| other < value);
        self.insert(place, value);
    }
}

// By default, the instances of a generic function share a row; `per_instance` separates them.
#[measure_execution_time(per_instance)]
fn filled<N: Numbers>(mut numbers: N) -> N {
    numbers.fill(5_000);
    numbers
}

fn main() {
    let tree = filled(Tree::new());
    let sorted = filled(Vec::new());
    let found = sorted.iter().filter(|value| tree.contains(value)).count();
    println!(
        "{found} of {} found in a tree of depth {}",
        tree.len(),
        tree.depth()
    );
    println!(
        "\n{}",
        summary().table(TableOptions::new().sort_by(SortKey::Name))
    );
}
