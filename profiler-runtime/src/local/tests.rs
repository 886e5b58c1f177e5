use std::panic::Location;
use std::thread;

use super::*;
use crate::name::Name;

fn name(text: &str) -> &'static Name {
    name::declared(text, Location::caller())
}

/// Runs `f` on a thread of its own, and waits until that has ended.
fn on_thread<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    thread::spawn(f).join().expect("does not panic")
}

#[test]
fn a_thread_has_one_cell_for_each_name() {
    let (one, other) = (name("local: one").id, name("local: other").id);
    on_thread(move || {
        let first = cell(one).unwrap();
        assert!(std::ptr::eq(first, cell(one).unwrap()));
        assert!(!std::ptr::eq(first, cell(other).unwrap()));
        assert_eq!(first.name(), one);
    });
}

#[test]
fn a_thread_that_called_nothing_has_no_cells() {
    let id = name("local: not called").id;
    on_thread(move || {
        assert!(
            with_state(|state| state.cell_at(slot_index(id) as usize))
                .flatten()
                .is_none()
        );
        assert_eq!(all_cells().count(), 0);
    });
}

#[test]
fn no_cell_is_created_inside_the_profiler() {
    let id = name("local: inside").id;
    on_thread(move || {
        let reentrancy = ReentrancyGuard::try_enter();
        assert_eq!(cell(id).err(), Some(NoCell::Reentrant));
        drop(reentrancy);
        let created = cell(id).unwrap();
        // One that exists is found without a lock, also from inside.
        let _reentrancy = ReentrancyGuard::try_enter();
        assert!(cell(id).is_ok_and(|found| std::ptr::eq(found, created)));
    });
}

#[test]
fn counts_move_to_their_name_when_the_thread_ends() {
    let name = name("local: retired");
    on_thread(|| {
        let cell = cell(name.id).unwrap();
        let _ = cell.count(10, 7, true);
        assert!(!has_ended());
        release();
        assert!(has_ended());
        assert_eq!(super::cell(name.id).err(), Some(NoCell::Unavailable));
        assert_eq!(innermost(), Innermost::NONE);
        assert!(with_ring(|_| ()).is_none());
    });
    let totals = name.totals();
    assert_eq!((totals.total, totals.own, totals.open), (10, 7, 0));
}

/// Measures a call in its destructor.
struct CountsInDrop(&'static Name);

impl Drop for CountsInDrop {
    fn drop(&mut self) {
        match cell(self.0.id) {
            Ok(cell) => _ = cell.count(1, 1, true),
            Err(_) => self.0.count_without_cell(|cell| _ = cell.count(1, 1, true)),
        }
    }
}

#[test]
fn calls_in_destructors_of_thread_locals_are_counted() {
    thread_local! {
        static BEFORE: CountsInDrop = CountsInDrop(name("local: destructor"));
        static AFTER: CountsInDrop = CountsInDrop(name("local: destructor"));
    }
    let name = name("local: destructor");
    on_thread(|| {
        // Destructors run in an order that the system chooses: have one registered before the profiler's and one after.
        BEFORE.with(|_| ());
        let _ = cell(name.id);
        AFTER.with(|_| ());
    });
    assert_eq!(name.totals().total, 2);
}

#[test]
fn open_names_are_listed_outermost_first() {
    let names = ["local: outer", "local: middle", "local: inner"].map(|text| name(text).id);
    on_thread(move || {
        // Created in another order than they are opened in.
        let [inner, outer, middle] = [names[2], names[0], names[1]].map(|id| cell(id).unwrap());
        outer.enter(1);
        middle.enter(2);
        inner.enter(3);
        assert_eq!(*open_names(3), names);
        assert_eq!(*open_names(2), names[..2]);
        presume_leaked_above(1);
        assert_eq!(*open_names(3), names[..1]);
    });
}

#[test]
fn decisions_are_kept_by_site_and_text() {
    on_thread(|| {
        assert_eq!(cached_decision(1, "text"), None);
        cache_decision(1, "text", 7);
        cache_decision(2, "text", 8);
        cache_decision(1, "text", 9);
        assert_eq!(cached_decision(1, "text"), Some(9));
        assert_eq!(cached_decision(2, "text"), Some(8));
        assert_eq!(cached_decision(1, "other"), None);
    });
}

#[test]
fn a_handle_keeps_each_call_around_it_once() {
    let name = name("local: calls around").id;
    on_thread(move || {
        let _ = cell(name);
        for _ in 0..20 {
            let opened = with_state(|state| {
                let serial = state.last_serial.get() + 1;
                state.last_serial.set(serial);
                (serial, state.innermost.replace(Innermost::new(serial)))
            });
            let (serial, outer) = opened.unwrap();
            callers::opened(name, serial, outer);
            let scope = share_innermost().unwrap();
            // One from no caller, and the recursive one.
            assert!(scope.calls.len() <= 2, "{:?}", scope.calls);
            assert!(enter(&scope) > serial);
        }
    });
}
