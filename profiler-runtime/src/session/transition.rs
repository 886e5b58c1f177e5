//! What a session does between two steps: the table of `torch.profiler`.

use crate::config::Action;

/// One thing to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Calls are recorded from now on, for nobody yet.
    Prepare,
    /// A window opens.
    Start,
    /// The window that is open is complete.
    Stop,
    /// It is handed over.
    Ready,
    /// It is thrown away.
    Discard,
    /// Calls are not recorded any more.
    Rest,
    /// The schedule leaves a window without having saved it, or a warm-up without a window.
    Warn,
}

/// What is to be done where one action follows another; `None` as the next one is the session's end.
pub(super) fn between(before: Action, next: Option<Action>) -> &'static [Effect] {
    use Action::{None as Nothing, Record, RecordAndSave, Warmup};
    use Effect::{Discard, Prepare, Ready, Rest, Start, Stop, Warn};
    match (before, next) {
        (Nothing, Some(Nothing) | None)
        | (Warmup, Some(Warmup))
        | (Record, Some(Record | RecordAndSave)) => &[],
        (Nothing, Some(Warmup)) => &[Prepare],
        (Nothing, Some(Record | RecordAndSave)) => &[Prepare, Start],
        (Warmup, Some(Nothing)) => &[Warn, Start, Stop, Discard, Rest],
        (Warmup, Some(Record | RecordAndSave)) => &[Start],
        // Nothing that belongs to a window has been recorded.
        (Warmup, None) => &[Start, Stop, Discard, Rest],
        (Record, Some(Nothing)) => &[Warn, Stop, Discard, Rest],
        (Record, Some(Warmup)) => &[Warn, Stop, Discard],
        // The window is shorter than it was to be, and delivered.
        (Record | RecordAndSave, None) | (RecordAndSave, Some(Nothing)) => &[Stop, Ready, Rest],
        (RecordAndSave, Some(Warmup)) => &[Stop, Ready, Prepare],
        (RecordAndSave, Some(Record | RecordAndSave)) => &[Stop, Ready, Prepare, Start],
    }
}

#[cfg(test)]
mod tests {
    use super::Effect::{self, Discard, Prepare, Ready, Rest, Start, Stop, Warn};
    use super::*;

    const ACTIONS: [Action; 4] = [
        Action::None,
        Action::Warmup,
        Action::Record,
        Action::RecordAndSave,
    ];

    /// The rows are the actions before, the columns those after and the end.
    const TABLE: [[&[Effect]; 5]; 4] = [
        [&[], &[Prepare], &[Prepare, Start], &[Prepare, Start], &[]],
        [
            &[Warn, Start, Stop, Discard, Rest],
            &[],
            &[Start],
            &[Start],
            &[Start, Stop, Discard, Rest],
        ],
        [
            &[Warn, Stop, Discard, Rest],
            &[Warn, Stop, Discard],
            &[],
            &[],
            &[Stop, Ready, Rest],
        ],
        [
            &[Stop, Ready, Rest],
            &[Stop, Ready, Prepare],
            &[Stop, Ready, Prepare, Start],
            &[Stop, Ready, Prepare, Start],
            &[Stop, Ready, Rest],
        ],
    ];

    #[test]
    fn the_table_is_torchs() {
        for (before, row) in ACTIONS.into_iter().zip(TABLE) {
            let nexts = ACTIONS.into_iter().map(Some).chain([None]);
            for (next, effects) in nexts.zip(row) {
                assert_eq!(between(before, next), effects, "{before:?} to {next:?}");
            }
        }
    }

    #[test]
    fn whatever_the_schedule_says_windows_open_and_close_in_turn() {
        // Every sequence of six actions and the end.
        for code in 0..4_usize.pow(6) {
            let actions: Vec<Action> = (0..6)
                .map(|place| ACTIONS[code / 4_usize.pow(place) % 4])
                .collect();
            let (mut recording, mut open, mut closed) = (false, false, false);
            let mut before = Action::None;
            for next in actions.into_iter().map(Some).chain([None]) {
                for effect in between(before, next) {
                    match effect {
                        Prepare => recording = true,
                        Start => {
                            assert!(recording && !open && !closed);
                            open = true;
                        }
                        Stop => {
                            assert!(open);
                            (open, closed) = (false, true);
                        }
                        Ready | Discard => {
                            assert!(closed);
                            closed = false;
                        }
                        Rest => recording = false,
                        Warn => {}
                    }
                }
                before = next.unwrap_or_default();
                assert_eq!(open, before.is_recording());
                assert_eq!(recording, before != Action::None);
                assert!(!closed);
            }
        }
    }
}
