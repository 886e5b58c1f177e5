//! Links of a thread's scopes to those of other threads.
//!
//! A thread has a short list of links, in memory of its [`Block`]. It is empty unless the program uses handles. A link is
//! one of two:
//!
//! - The *owner* of a [`SharedScope`]: an open scope of this thread, or a poll, that has a handle.
//! - An *entered handle*. It has a serial and is the innermost entry of the thread, as a scope would be, but measures
//!   nothing. Scopes opened directly inside are children of the handle's scope.
//!
//! While the innermost entry has a link, [`ThreadState::innermost`] is [linked](Innermost::is_linked), and the thread's
//! table of cells is the empty one. So scopes directly inside take the slow path, which calls [`child_opened`] and
//! [`child_closed`]; the scope with the link takes it too when it closes. The fast path needs no check, and scopes further
//! inside take it.
//!
//! # Times
//!
//! A scope inside an entered handle is measured on two sides. It is a child of what encloses it on its own thread, whose self
//! time excludes it as always: each instant of a thread is in the self time of one scope. And it is a child of the
//! handle's scope, whose self time excludes the instants in which such children run while its own thread runs none; see
//! [`Coverage`](crate::stats::Coverage).
//!
//! # Names
//!
//! A call is recursive if a call of its name is open around it, on its own thread or along handles. So an
//! entered handle marks the cells of all names around its scope, as a poll marks its name, until it is left. One more cell says
//! which of them is the scope's.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use profiler_host::diagnostics;
use profiler_host::sync::ReentrancyGuard;

use super::shared_scope::SharedScope;
use super::{Block, Innermost, ThreadState, open_names, presume_leaked_above, with_state};
use crate::clock::now;
use crate::stats::{self, StatCell};

/// Links that a thread keeps. Beyond that, further handles have no effect: scopes that are open hold the serials of the
/// older links, and restore them when they close.
const MAX_LINKS: usize = 1024;

/// Owners that are no longer innermost, though their scopes have not ended, that a thread keeps. Beyond that, the oldest one is
/// forgotten: a leaked guard has one for ever.
const MAX_DISPLACED: usize = MAX_LINKS / 2;

/// One link of a thread.
#[derive(Debug)]
pub(super) struct Link {
    /// The serial of the scope, poll or entered handle.
    serial: u64,
    scope: Arc<SharedScope>,
    kind: LinkKind,
    /// `true` while a child is open directly inside.
    has_child: bool,
}

#[derive(Debug)]
enum LinkKind {
    Owner,
    /// An owner whose scope was presumed leaked: a scope around it has closed. If it ends after all, the end finds what it
    /// shares.
    Displaced,
    Entered {
        /// When, in ticks, while [`NOTES_TIMES`]; else 0.
        since: u64,
        /// The value of `innermost` that it replaced.
        outer: Innermost,
        /// `true` if it was left while a scope inside was open. It ends with that scope.
        is_left: bool,
    },
}

/// `true` while entered handles note when they were entered: nobody asks at other times.
static NOTES_TIMES: AtomicBool = AtomicBool::new(false);

/// Sets whether entered handles note when.
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "nothing is recorded")
)]
pub(crate) fn note_times(notes: bool) {
    NOTES_TIMES.store(notes, Relaxed);
}

/// The handle that a thread is directly inside of.
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "nothing is recorded")
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EnteredHandle {
    /// The id of its [`SharedScope`].
    pub(crate) id: u64,
    /// When it was entered, in ticks; 0 if times were not noted then.
    pub(crate) since: u64,
}

/// Returns the handle that this thread is directly inside of: no scope was opened there that is still open. It takes no lock
/// and allocates nothing.
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "nothing is recorded")
)]
pub(crate) fn entered() -> Option<EnteredHandle> {
    let serial = super::innermost().if_linked()?;
    with_links(|_, links| {
        let link = find(links, serial)?;
        match link.kind {
            LinkKind::Entered { since, .. } => Some(EnteredHandle {
                id: link.scope.id,
                since,
            }),
            LinkKind::Owner | LinkKind::Displaced => None,
        }
    })
    .flatten()
}

/// The links of a thread, oldest first.
pub(super) type Links = RefCell<Vec<Link>>;

/// Where a scope was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The serial of the enclosing scope on the thread, or 0.
    pub(crate) enclosing: u64,
    /// The id of the [`SharedScope`] that is the parent, if a handle gave one; else 0.
    pub(crate) parent: u64,
}

fn with_links<T>(f: impl FnOnce(&'static Block, &mut Vec<Link>) -> T) -> Option<T> {
    let block = with_state(|state| state.block.get()).flatten()?;
    let mut links = block.links.try_borrow_mut().ok()?;
    Some(f(block, &mut links))
}

fn find(links: &mut [Link], serial: u64) -> Option<&mut Link> {
    links.iter_mut().rev().find(|link| link.serial == serial)
}

/// Adds a link. Returns `false` if there is no memory, or if there are too many.
fn push(links: &mut Vec<Link>, link: Link) -> bool {
    if links.len() >= MAX_LINKS {
        diagnostics::warn_once(
            "a thread is inside more than 1024 handles and scopes that have handles; further handles have no effect there: \
             drop the guards of `Handle::enter`, or take fewer handles in recursive calls",
        );
        return false;
    }
    let has_room = links.try_reserve(1).is_ok();
    if has_room {
        links.push(link);
    }
    has_room
}

/// Returns the scope of the link with this serial.
pub(super) fn scope_of(serial: u64) -> Option<Arc<SharedScope>> {
    with_links(|_, links| Some(Arc::clone(&find(links, serial)?.scope))).flatten()
}

/// Makes an open scope or poll of this thread the owner of `scope`.
pub(super) fn own(serial: u64, scope: &Arc<SharedScope>) -> bool {
    let link = Link {
        serial,
        scope: Arc::clone(scope),
        kind: LinkKind::Owner,
        has_child: false,
    };
    let is_added = with_links(|_, links| push(links, link)) == Some(true);
    if is_added {
        with_state(|state| state.set_innermost(Innermost::linked(serial)));
    }
    is_added
}

/// Ends the innermost scope as an owner. Returns what it shared.
pub(crate) fn disown(serial: u64) -> Option<Arc<SharedScope>> {
    with_links(|_, links| {
        let is_owner = |link: &Link| {
            link.serial == serial && matches!(link.kind, LinkKind::Owner | LinkKind::Displaced)
        };
        let place = links.iter().rposition(is_owner)?;
        Some(links.remove(place).scope)
    })
    .flatten()
}

/// Resumes a future that has a handle, at the beginning of a poll.
pub(crate) fn resume_poll(serial: u64, scope: &Arc<SharedScope>) {
    let _reentrancy = ReentrancyGuard::try_enter();
    if own(serial, scope) {
        scope.coverage.resume(now);
    }
}

/// Suspends a future at the end of a poll. Returns what it shares, if it has a handle.
pub(crate) fn suspend_poll(serial: u64) -> Option<Arc<SharedScope>> {
    let scope = disown(serial)?;
    scope.coverage.pause(now);
    Some(scope)
}

/// Leaves handles that were entered inside the scope with this serial, which has just closed, and displaces the scopes inside.
#[cold]
fn forget_above(serial: u64) {
    let _reentrancy = ReentrancyGuard::try_enter();
    with_links(|block, links| {
        let mut kept = 0;
        while links.len() > kept
            && let Some(mut link) = links.pop_if(|link| link.serial > serial)
        {
            if let LinkKind::Entered { .. } = link.kind {
                link.abandon(block);
            } else {
                link.kind = LinkKind::Displaced;
                // Below all others, so that the last one is that of the innermost entry.
                links.insert(kept, link);
                kept += 1;
            }
        }
        forget_oldest_displaced(links);
        show_innermost(block, links);
    });
}

fn forget_oldest_displaced(links: &mut Vec<Link>) {
    let is_displaced = |link: &Link| matches!(link.kind, LinkKind::Displaced);
    let mut displaced = links.iter().filter(|link| is_displaced(link)).count();
    while displaced > MAX_DISPLACED {
        let oldest = links.iter().enumerate();
        let oldest = oldest.filter(|(_, link)| is_displaced(link));
        if let Some((place, _)) = oldest.min_by_key(|(_, link)| link.serial) {
            links.remove(place);
        }
        displaced -= 1;
    }
}

impl Link {
    /// Undoes what an entered handle did, though scopes inside are still open.
    fn abandon(&self, block: &Block) {
        unmark(block, self);
        if self.has_child {
            self.scope.coverage.leave(now);
        }
    }
}

/// Makes the scope of a handle the parent of scopes opened from here on. Returns the serial for [`leave`], or 0 if the
/// thread has no memory for the link, has too many, or has ended.
pub(crate) fn enter(scope: &Arc<SharedScope>) -> u64 {
    let Some(_reentrancy) = ReentrancyGuard::try_enter() else {
        return 0;
    };
    let enter = |state: &ThreadState| {
        let block = state.block()?;
        let mut links = block.links.try_borrow_mut().ok()?;
        let serial = state.last_serial.get() + 1;
        let outer = state.innermost.get();
        let link = Link {
            serial,
            scope: Arc::clone(scope),
            kind: LinkKind::Entered {
                since: if NOTES_TIMES.load(Relaxed) { now() } else { 0 },
                outer,
                is_left: false,
            },
            has_child: false,
        };
        if !push(&mut links, link) {
            return None;
        }
        state.last_serial.set(serial);
        state.set_innermost(Innermost::linked(serial));
        for id in &*scope.names {
            if let Some(cell) = block.cell(*id) {
                cell.enter_poll(serial);
            }
        }
        show_innermost(block, &links);
        Some(serial)
    };
    with_state(enter).flatten().unwrap_or(0)
}

/// Leaves a handle.
pub(crate) fn leave(serial: u64) {
    let _reentrancy = ReentrancyGuard::try_enter();
    with_links(|_, links| {
        if let Some(link) = find(links, serial)
            && let LinkKind::Entered { is_left, .. } = &mut link.kind
        {
            *is_left = true;
        }
    });
    with_state(ThreadState::skip_left_handles);
}

fn unmark(block: &Block, entered: &Link) {
    for id in &*entered.scope.names {
        if let Some(cell) = block.cell(*id) {
            cell.leave_poll(entered.serial);
            block.borrowed.end_unused(*id);
        }
    }
}

/// Shows other threads the innermost handle that this one has entered: the cells of the names around its scope do not say
/// which is its own, and there may be none. Without memory for it, those threads see less.
fn show_innermost(block: &Block, links: &[Link]) {
    let is_entered = |link: &&Link| matches!(link.kind, LinkKind::Entered { .. });
    let entered = links.iter().rfind(is_entered);
    let name = entered.and_then(|link| Some((*link.scope.names.last()?, link.serial)));
    match (name, block.entered.get()) {
        (Some((name, serial)), known) => {
            let cell = known.or_else(|| stats::take().ok());
            block.entered.set(cell);
            if let Some(cell) = cell {
                cell.show_entered(name, serial);
            }
        }
        (None, Some(cell)) => cell.show_left(),
        (None, None) => {}
    }
}

/// Marks a new cell as open, if a handle was entered inside a call of its name.
pub(super) fn mark_new_cell(id: u32, cell: &StatCell) {
    with_links(|_, links| {
        let is_inside = |link: &&Link| {
            matches!(link.kind, LinkKind::Entered { .. }) && link.scope.names.contains(&id)
        };
        if let Some(entered) = links.iter().find(is_inside) {
            cell.enter_poll(entered.serial);
        }
    });
}

impl ThreadState {
    /// Changes the innermost entry, and the table of cells with it.
    pub(crate) fn set_innermost(&self, innermost: Innermost) {
        self.innermost.set(innermost);
        self.follow_innermost();
    }

    /// Makes the table of cells the one that scopes directly inside the innermost entry may use.
    pub(super) fn follow_innermost(&self) {
        let block = self.block.get();
        let block = block.filter(|_| !self.innermost.get().is_linked());
        self.slots
            .set(block.map_or(&[], |block| block.slots.table()));
    }

    /// Removes handles that were left from the innermost end.
    pub(crate) fn skip_left_handles(&self) {
        while let Some(serial) = self.innermost.get().if_linked() {
            let left = with_links(|block, links| {
                let is_left = |link: &mut Link| {
                    link.serial == serial
                        && matches!(link.kind, LinkKind::Entered { is_left, .. } if is_left)
                };
                let entered = links.pop_if(is_left)?;
                unmark(block, &entered);
                show_innermost(block, links);
                match entered.kind {
                    LinkKind::Entered { outer, .. } => Some(outer),
                    LinkKind::Owner | LinkKind::Displaced => None,
                }
            });
            match left.flatten() {
                Some(outer) => self.innermost.set(outer),
                None => break,
            }
        }
        self.follow_innermost();
    }
}

/// Notes that a scope or poll opened directly inside an entry with a link. `outer` is the value of `innermost` that it
/// replaced.
#[cold]
pub(crate) fn child_opened(outer: Innermost) {
    each_around(outer, |link, is_parent| match link.kind {
        LinkKind::Entered { .. } if is_parent && !link.has_child => {
            link.has_child = true;
            link.scope.coverage.enter(now);
        }
        LinkKind::Owner if !link.has_child => {
            link.has_child = true;
            link.scope.coverage.pause(now);
        }
        _ => {}
    });
    with_state(ThreadState::follow_innermost);
}

/// Notes that such a scope or poll has closed.
#[cold]
pub(crate) fn child_closed(outer: Innermost) {
    each_around(outer, |link, is_parent| match link.kind {
        LinkKind::Entered { .. } if is_parent && link.has_child => {
            link.has_child = false;
            link.scope.coverage.leave(now);
        }
        LinkKind::Owner if link.has_child => {
            link.has_child = false;
            link.scope.coverage.resume(now);
        }
        _ => {}
    });
    let _reentrancy = ReentrancyGuard::try_enter();
    with_state(ThreadState::skip_left_handles);
}

/// Calls `f` with the link of the innermost entry, and with those around it as far as they enclose the same scope: the
/// entered handles, and the scope around those. The flag is `true` for the first.
fn each_around(outer: Innermost, mut f: impl FnMut(&mut Link, bool)) {
    with_links(|_, links| {
        let (mut at, mut is_parent) = (outer, true);
        while let Some(serial) = at.if_linked() {
            let Some(link) = find(links, serial) else {
                break;
            };
            f(link, is_parent);
            is_parent = false;
            match link.kind {
                LinkKind::Entered { outer, .. } => at = outer,
                LinkKind::Owner | LinkKind::Displaced => break,
            }
        }
    });
}

/// Returns the place of a scope that replaced `outer` as the innermost entry.
pub(crate) fn place(outer: Innermost) -> Place {
    let mut place = Place {
        enclosing: outer.serial(),
        parent: 0,
    };
    if !outer.is_linked() {
        return place;
    }
    each_around(outer, |link, is_parent| {
        if let LinkKind::Entered { outer, .. } = link.kind {
            place.enclosing = outer.serial();
            if is_parent {
                place.parent = link.scope.id;
            }
        }
    });
    place
}

/// Returns the serial of the enclosing scope of one that replaced `outer`, and the scope of a handle that is its parent.
pub(super) fn parent_of(outer: Innermost) -> (u64, Option<Arc<SharedScope>>) {
    let place = place(outer);
    let link = outer.if_linked().filter(|_| place.parent != 0);
    (place.enclosing, link.and_then(scope_of))
}

/// Calls `f` with the scopes of the handles that are entered on this thread.
pub(super) fn with_entered(mut f: impl FnMut(&SharedScope)) {
    with_links(|_, links| {
        for link in links.iter() {
            if let LinkKind::Entered { .. } = link.kind {
                f(&link.scope);
            }
        }
    });
}

/// Returns the names around a scope that replaced `outer` as the innermost entry, outermost first.
pub(crate) fn names_around(outer: Innermost) -> Arc<[u32]> {
    if let Some(scope) = outer.if_linked().and_then(scope_of) {
        return Arc::clone(&scope.names);
    }
    let own = open_names(outer.serial());
    // A thread without a cell for a name has nothing that marks it as open.
    let mut names: Vec<u32> = Vec::new();
    with_links(|_, links| {
        for link in links.iter() {
            if let LinkKind::Entered { .. } = link.kind {
                let new = link.scope.names.iter().filter(|name| !names.contains(name));
                let new: Vec<u32> = new.copied().collect();
                names.extend(new);
            }
        }
    });
    if names.is_empty() {
        return own;
    }
    let inside = own.iter().filter(|name| !names.contains(name));
    names.iter().chain(inside).copied().collect()
}

/// Presumes that all scopes and links inside the one with this serial were leaked.
pub(crate) fn presume_leaked_inside(serial: u64) {
    presume_leaked_above(serial);
    forget_above(serial);
}
