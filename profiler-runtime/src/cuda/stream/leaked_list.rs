//! A selected value that any thread reads with one load.

use std::ptr;

use profiler_host::sync::primitive::atomic::Ordering::{AcqRel, Acquire};
use profiler_host::sync::primitive::{AtomicPtr, const_unless_loom};

/// Values of which one or none is selected. A value is never freed once it has been selected.
///
/// # Protocol
///
/// Readers use the selected value without a lock or a reference count, and may still use it when another one has been
/// selected. So values are leaked, in nodes that are linked in `nodes`; selecting an equal value again finds its node.
///
/// - A node is written before it is published, and never changed afterwards. Both pointers are stored with `Release`
///   (as part of `AcqRel`) and loaded with `Acquire`, so a thread that sees a node's address sees its contents. The
///   nodes that it links to were published before, and each exchange of `nodes` continues the release sequences before
///   it.
/// - `nodes` is a stack that only grows. So the exchange that adds a node cannot suffer from ABA: no address becomes
///   its head twice.
/// - Two threads that select the same new value at once may add a node each. Both nodes are valid. The older one is not
///   found again, which costs its memory.
#[derive(Debug)]
pub(crate) struct LeakedList<T: 'static> {
    /// The node of the selected value; null for none.
    selected: AtomicPtr<Node<T>>,
    /// The newest node.
    nodes: AtomicPtr<Node<T>>,
}

#[derive(Debug)]
struct Node<T> {
    value: T,
    next: *const Node<T>,
}

impl<T: Send + Sync> LeakedList<T> {
    const_unless_loom! {
        /// A list without values.
        pub(crate) fn new() -> Self {
            Self {
                selected: AtomicPtr::new(ptr::null_mut()),
                nodes: AtomicPtr::new(ptr::null_mut()),
            }
        }
    }

    /// Returns the selected value: one load.
    #[inline]
    pub(crate) fn selected(&self) -> Option<&'static T> {
        let node = self.selected.load(Acquire);
        // SAFETY: null, or a leaked node, which was published with `Release` and is never changed. `T` is `Sync`.
        unsafe { node.as_ref() }.map(|node| &node.value)
    }

    /// Selects a value, or a known one that `can_replace` accepts in its place. Returns the value that was selected
    /// before.
    pub(crate) fn select(
        &self,
        value: T,
        can_replace: impl Fn(&T, &T) -> bool,
    ) -> Option<&'static T> {
        self.swap(self.node_for(value, can_replace))
    }

    /// Selects no value. Returns the value that was selected before.
    pub(crate) fn deselect(&self) -> Option<&'static T> {
        self.swap(ptr::null())
    }

    fn swap(&self, node: *const Node<T>) -> Option<&'static T> {
        let before = self.selected.swap(node.cast_mut(), AcqRel);
        // SAFETY: as in `selected`.
        unsafe { before.as_ref() }.map(|node| &node.value)
    }

    fn node_for(&self, value: T, can_replace: impl Fn(&T, &T) -> bool) -> *const Node<T> {
        let mut first = self.nodes.load(Acquire);
        let mut node: *const Node<T> = first;
        // SAFETY: null, or a node that was leaked below.
        while let Some(known) = unsafe { node.as_ref() } {
            if can_replace(&known.value, &value) {
                return node;
            }
            node = known.next;
        }
        let new = Box::into_raw(Box::new(Node { value, next: first }));
        while let Err(other) = self.nodes.compare_exchange(first, new, AcqRel, Acquire) {
            first = other;
            // SAFETY: not published yet, so no other thread can access it.
            unsafe { (*new).next = first };
        }
        new
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::BTreeSet;
    use std::thread;

    use super::*;

    fn nodes(list: &LeakedList<u32>) -> Vec<u32> {
        let mut values = Vec::new();
        let mut node: *const Node<u32> = list.nodes.load(Acquire);
        // SAFETY: nodes are leaked.
        while let Some(known) = unsafe { node.as_ref() } {
            values.push(known.value);
            node = known.next;
        }
        values
    }

    #[test]
    fn selecting_returns_the_value_before() {
        let list = LeakedList::new();
        assert_eq!((list.selected(), list.deselect()), (None, None));
        assert_eq!(list.select(1, u32::eq), None);
        assert_eq!(list.select(2, u32::eq), Some(&1));
        assert_eq!(list.selected(), Some(&2));
        assert_eq!(list.deselect(), Some(&2));
        assert_eq!(list.selected(), None);
    }

    #[test]
    fn a_value_that_is_selected_again_has_one_node() {
        let list = LeakedList::new();
        for value in [1, 2, 1, 2, 1] {
            list.select(value, u32::eq);
        }
        assert_eq!(nodes(&list), [2, 1]);
    }

    #[test]
    fn nodes_that_threads_add_at_once_are_all_linked() {
        let list = LeakedList::new();
        thread::scope(|scope| {
            for value in 0..8 {
                scope.spawn({
                    let list = &list;
                    move || _ = list.select(value, u32::eq)
                });
            }
        });
        let all: BTreeSet<_> = nodes(&list).into_iter().collect();
        assert_eq!(all, (0..8).collect());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::thread;

    use super::*;
    use profiler_host::sync::primitive::{Arc, UnsafeCell};

    /// A value whose accesses loom checks for data races.
    struct Value(UnsafeCell<u32>);

    // SAFETY: read only after it has been published; loom finds every access that is not ordered.
    unsafe impl Sync for Value {}

    fn value(number: u32) -> Value {
        let value = Value(UnsafeCell::new(0));
        // SAFETY: not shared yet.
        value.0.with_mut(|place| unsafe { *place = number });
        value
    }

    fn number(value: &Value) -> u32 {
        // SAFETY: never written after it was published.
        value.0.with(|place| unsafe { *place })
    }

    fn is_same(one: &Value, other: &Value) -> bool {
        number(one) == number(other)
    }

    #[test]
    fn a_reader_sees_what_the_selected_node_holds() {
        loom::model(|| {
            let list = Arc::new(LeakedList::new());
            let selecting = {
                let list = Arc::clone(&list);
                thread::spawn(move || {
                    list.select(value(7), is_same);
                })
            };
            if let Some(selected) = list.selected() {
                assert_eq!(number(selected), 7);
            }
            selecting.join().unwrap();
        });
    }

    #[test]
    fn two_threads_that_select_see_each_others_nodes() {
        loom::model(|| {
            let list = Arc::new(LeakedList::new());
            let other = {
                let list = Arc::clone(&list);
                thread::spawn(move || list.select(value(1), is_same).map(number))
            };
            let before = list.select(value(2), is_same).map(number);
            let others = other.join().unwrap();
            assert!(matches!(
                (before, others),
                (None, Some(2)) | (Some(1), None)
            ));
            let selected = list.selected().map(number);
            assert_eq!(selected, Some(if before.is_some() { 2 } else { 1 }));
        });
    }
}
