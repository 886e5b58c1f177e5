use std::panic::Location;

use super::*;
use crate::name;

/// The state of a process without variables of the profiler.
fn control() -> Control {
    let (settings, _) = Settings::from_environment();
    Control::new(Settings {
        enabled: true,
        filter: Filter::default(),
        tensorboard: None,
        ..settings
    })
}

fn name(text: &str) -> &'static Name {
    name::declared(text, Location::caller())
}

#[cfg(not(feature = "strip"))]
fn decision(control: &Control, text: &str) -> SiteDecision {
    let stamped = control.decide(name(text));
    stamped.under(control.word()).expect("made under this word")
}

#[test]
fn the_word_is_off_if_measuring_is_disabled_or_bypassed() {
    let mut control = control();
    assert_eq!(is_off(control.word()), cfg!(feature = "strip"));
    control.bypasses = 1;
    assert!(is_off(control.word()));
    control.bypasses = 0;
    control.settings.enabled = false;
    assert!(is_off(control.word()));
}

#[test]
fn turning_off_and_on_keeps_decisions_valid() {
    let mut control = control();
    let before = control.word();
    control.settings.enabled = false;
    assert!(cfg!(feature = "strip") || control.word() != before);
    control.settings.enabled = true;
    assert_eq!(control.word(), before);
}

#[test]
fn a_new_generation_makes_every_decision_outdated() {
    let mut control = control();
    let stamped = control.decide(name("switch: outdated"));
    control.new_generation();
    assert_eq!(stamped.under(control.word()), None);
}

#[test]
fn generations_wrap_around_to_one_that_is_not_zero() {
    let mut control = control();
    control.generation = !ON;
    control.new_generation();
    assert_eq!(control.generation, GENERATION);
}

#[test]
fn no_site_holds_a_decision_for_the_uninitialized_word() {
    assert_eq!(StampedDecision::NONE.under(UNINITIALIZED), None);
    assert_ne!(control().word(), UNINITIALIZED);
}

#[test]
#[cfg(not(feature = "strip"))]
fn a_decision_follows_filter_logger_session_and_step() {
    let mut control = control();
    let plain = decision(&control, "switch: kept");
    assert_eq!(plain.raw(), name("switch: kept").id);

    control.default_logger = true;
    control.recording = true;
    control.settings.session.step = Some("switch: kept".into());
    let all = decision(&control, "switch: kept");
    assert!(all.is_logged() && all.is_recorded() && all.is_step() && !all.is_excluded());
    let other = decision(&control, "switch: other");
    assert!(other.is_logged() && other.is_recorded() && !other.is_step());

    control.set_filter(Filter::parse("-switch: kept"));
    let excluded = decision(&control, "switch: kept");
    assert!(excluded.is_excluded() && !excluded.is_logged() && !excluded.is_step());
    assert!(!decision(&control, "switch: other").is_excluded());
}

#[test]
fn a_child_keeps_the_switch_and_forgets_what_the_program_set() {
    let environment = control().settings;
    for enabled in [true, false] {
        let mut parent = control();
        parent.settings.enabled = enabled;
        parent.set_filter(Filter::parse("nothing"));
        parent.default_logger = true;
        parent.recording = true;

        let child = Control::restored(&environment, parent.word());
        assert_eq!(is_off(child.word()), is_off(parent.word()));
        assert_ne!(child.generation, parent.generation);
        assert!(!child.default_logger && !child.recording);
        assert_eq!(child.settings.filter, Filter::default());
    }
}

#[test]
fn a_child_of_a_process_that_has_not_started_keeps_what_the_environment_says() {
    let mut environment = control().settings;
    environment.enabled = false;
    let child = Control::restored(&environment, UNINITIALIZED);
    assert!(!child.is_published && is_off(child.word()));
}

/// Tests of the process's own switch run in forked children, so that tests beside them are measured.
#[cfg(all(unix, not(miri), not(feature = "strip")))]
mod of_the_process {
    use super::*;
    use crate::fork_and::fork_and;

    #[test]
    fn bypasses_nest_and_end_with_a_panic() {
        fork_and(|| {
            set_enabled(true);
            let inner = pause(|| pause(is_enabled) || is_enabled());
            let panicked = std::panic::catch_unwind(|| {
                pause(|| std::panic::resume_unwind(Box::new("ends here")))
            });
            !inner && panicked.is_err() && is_enabled()
        });
    }

    #[test]
    fn a_bypass_keeps_a_switch_that_is_off() {
        fork_and(|| {
            publish();
            set_enabled(false);
            pause(|| set_enabled(true));
            let on = is_enabled();
            set_enabled(false);
            pause(|| ());
            on && !is_enabled() && is_off(load())
        });
    }
}
