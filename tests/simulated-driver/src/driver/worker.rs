//! The thread that runs the program's host functions when their time has come.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, Once, PoisonError};
use std::thread;
use std::time::Duration;

use super::clock::Pace;
use super::code::SUCCESS;
use super::machine::{Locked, tell};

static STARTED: Once = Once::new();
static WOKEN: AtomicBool = AtomicBool::new(false);
static BED: Mutex<()> = Mutex::new(());
static ALARM: Condvar = Condvar::new();

/// Tells the worker to look again; starts it the first time.
pub(crate) fn wake() {
    STARTED.call_once(|| {
        let name = String::from("simulated host functions");
        // Without the thread no host function runs, and what waits for one waits on.
        drop(thread::Builder::new().name(name).spawn(work));
    });
    let _bed = BED.lock().unwrap_or_else(PoisonError::into_inner);
    WOKEN.store(true, SeqCst);
    ALARM.notify_one();
}

fn work() {
    super::thread::become_worker();
    loop {
        let mut machine = Locked::new();
        let now = machine.clock.now();
        let Some((work, function, context)) = machine.timeline.take_host_function(now) else {
            let left = match (machine.timeline.next_host_function(), machine.clock.pace()) {
                (Some(next), Pace::Real) => Duration::from_nanos(next - now),
                _ => Duration::from_secs(3_600),
            };
            drop(machine);
            sleep(left);
            continue;
        };
        let status = machine.context_failure(context).unwrap_or(SUCCESS);
        drop(machine);
        function.call(status);
        let mut machine = Locked::new();
        machine.timeline.running = None;
        let end = machine.clock.now();
        machine.complete(work, end);
        drop(machine);
        tell();
    }
}

fn sleep(most: Duration) {
    let mut bed = BED.lock().unwrap_or_else(PoisonError::into_inner);
    if !WOKEN.swap(false, SeqCst) {
        bed = ALARM
            .wait_timeout(bed, most)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
    }
    drop(bed);
}
