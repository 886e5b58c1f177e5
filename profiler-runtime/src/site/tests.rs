use super::*;
use crate::scope::builder::ScopeBuilder;
#[cfg(not(feature = "strip"))]
use crate::switch;

/// Returns what a call does now, or `None` where calls are not measured at all.
fn decision_of(builder: &ScopeBuilder<'_>) -> Option<SiteDecision> {
    builder.decision
}

#[cfg(not(feature = "strip"))]
fn name_of(builder: &ScopeBuilder<'_>) -> Option<&'static Name> {
    name::by_id(decision_of(builder)?.id())
}

#[test]
#[cfg(not(feature = "strip"))]
fn a_site_keeps_its_decision() {
    static SITE: CallSite = NEW_SITE;
    let first = decision_of(&SITE.begin_named("site: kept", 1));
    assert!(first.is_some());
    // The text is not looked at again.
    let second = decision_of(&SITE.begin_named("site: other text", 1));
    assert_eq!(first.map(SiteDecision::id), second.map(SiteDecision::id));
}

#[test]
#[cfg(not(feature = "strip"))]
fn a_site_keeps_its_name_in_the_next_generation() {
    static SITE: CallSite = NEW_SITE;
    let first = name_of(&SITE.begin_named("site: next generation", 1)).unwrap();
    switch::with_control(switch::Control::new_generation);
    let second = name_of(&SITE.begin_named("site: other text", 1)).unwrap();
    assert!(std::ptr::eq(first, second));
}

#[test]
#[cfg(not(feature = "strip"))]
fn a_function_is_named_by_what_is_inside_of_it() {
    static SITE: CallSite = NEW_SITE;
    let builder = SITE.begin_inside("site_tests::Model::forward::Here", 1);
    assert_eq!(
        name_of(&builder).unwrap().text,
        "site_tests::Model::forward"
    );
}

#[test]
#[cfg(not(feature = "strip"))]
fn a_site_with_several_names_keeps_them_apart() {
    static SITE: MultiNameSite = NEW_MULTI_NAME_SITE;
    let names = ["site: several: a", "site: several: b"];
    for _ in 0..2 {
        for text in names {
            assert_eq!(name_of(&SITE.begin_named(text, 1)).unwrap().text, text);
        }
    }
}

#[test]
#[cfg(not(feature = "strip"))]
fn functions_of_two_sites_with_one_path_have_two_names() {
    static ONE: MultiNameSite = NEW_MULTI_NAME_SITE;
    static OTHER: MultiNameSite = NEW_MULTI_NAME_SITE;
    let (first, text) = ("site_tests::first::Here", "site_tests::same::Here");
    // The first text of each site is found without the thread's map.
    drop((ONE.begin(first, 1), OTHER.begin(first, 1)));
    let one = name_of(&ONE.begin(text, 1)).unwrap();
    let other = name_of(&OTHER.begin(text, 1)).unwrap();
    assert!(!std::ptr::eq(one, other));
}

#[test]
#[cfg(not(feature = "strip"))]
fn a_long_name_built_at_run_time_is_truncated_once() {
    let text = "site: long ".repeat(name::MAX_LENGTH);
    let first = name_of(&begin_dynamic(&text)).unwrap();
    assert!(first.text.len() <= name::MAX_LENGTH);
    assert!(std::ptr::eq(first, name_of(&begin_dynamic(&text)).unwrap()));
}

#[test]
#[cfg(not(feature = "strip"))]
fn a_decision_made_before_the_driver_is_found_does_not_hold_after_it() {
    let name = name::declared("site: driver found", Location::caller());
    let found_just_after = || {
        switch::with_control(switch::Control::new_generation);
        false
    };
    let decision = decide_with(name, found_just_after);
    assert_eq!(decision.under(switch::load()), None);
}

#[test]
#[cfg(not(any(feature = "strip", miri)))]
fn calls_take_the_fast_path_while_a_driver_is_searched_for() {
    use crate::scope::{OpenScope, Scope};

    static SITE: CallSite = NEW_SITE;
    if cuda::is_in_use() {
        return;
    }
    assert!(cuda::may_be_found());
    let decision = decision_of(&SITE.begin_named("site: searching", 1)).expect("it is measured");
    drop(Scope::from(OpenScope::without_args(decision)));
    let open = OpenScope::fast(decision);
    assert!(open.is_some(), "{decision:?}");
    drop(Scope::from(open));
}

#[test]
fn no_site_decides_within_the_profiler_and_each_call_is_counted() {
    use profiler_host::sync::ReentrancyGuard;

    static SITE: CallSite = NEW_SITE;
    static SEVERAL: MultiNameSite = NEW_MULTI_NAME_SITE;
    let before = losses::refused();
    let _reentrancy = ReentrancyGuard::try_enter();
    assert_eq!(decision_of(&SITE.begin_named("site: reentrant", 1)), None);
    assert_eq!(decision_of(&begin_dynamic("site: reentrant")), None);
    for text in ["site: reentrant", "site: another, reentrant"] {
        assert_eq!(decision_of(&SEVERAL.begin_named(text, 1)), None);
    }
    // Other tests have such calls too.
    assert!(cfg!(feature = "strip") || losses::refused() >= before + 4);
}

/// The process's own switch is turned in forked children, so that tests beside them are measured.
#[cfg(all(unix, not(miri), not(feature = "strip")))]
mod in_a_child {
    use super::*;
    use crate::config::Filter;
    use crate::fork_and::fork_and;

    #[test]
    fn an_excluded_name_is_not_measured_until_the_filter_allows_it() {
        fork_and(|| {
            static SITE: CallSite = NEW_SITE;
            let set =
                |text| switch::with_control(|control| control.set_filter(Filter::parse(text)));
            let is_measured = || decision_of(&SITE.begin_named("site: filtered", 1)).is_some();
            set("-site: filtered");
            let excluded = !is_measured() && !is_measured();
            set("");
            excluded && is_measured()
        });
    }

    #[test]
    fn no_call_is_measured_while_off() {
        fork_and(|| {
            static SITE: CallSite = NEW_SITE;
            let is_measured = || decision_of(&SITE.begin_named("site: off", 1)).is_some();
            let before = is_measured();
            let inside = switch::pause(is_measured);
            before && !inside && is_measured()
        });
    }
}
