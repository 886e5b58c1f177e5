use super::*;
use crate::cuda::ffi::fake::FakeDriver;

/// Returns an anchor that the device passed at 100 ms.
fn anchor(driver: &FakeDriver) -> Anchor {
    driver.set_time(100.0);
    let mut anchor = Anchor::new(driver).expect("the driver is not broken");
    assert_eq!(anchor.renew_if_old(driver), Ok(None));
    anchor
}

/// Makes the anchor old enough to be renewed.
fn age(anchor: &mut Anchor) {
    anchor.attempted_at = 0;
}

fn event_at(driver: &FakeDriver, milliseconds: f32) -> Event {
    let event = driver.create_event().expect("the driver is not broken");
    driver.pass(event, milliseconds);
    event
}

#[test]
fn times_before_and_after_the_anchor_are_converted() {
    let driver = FakeDriver::new();
    let anchor = anchor(&driver);
    let [early, late] = [98.0, 103.0].map(|at| {
        let time = anchor.host_time(&driver, event_at(&driver, at));
        time.expect("the anchor was passed")
    });
    let apart = late.wall.duration_since(early.wall);
    assert_eq!(apart.ok(), Some(Duration::from_millis(5)));
    // The farther from the anchor, the less is known.
    let of_anchor = anchor.uncertainty().expect("the anchor was passed");
    assert!(of_anchor < early.uncertainty_ns && early.uncertainty_ns < late.uncertainty_ns);
}

#[test]
fn an_event_without_a_time_has_no_host_time() {
    let driver = FakeDriver::new();
    let anchor = anchor(&driver);
    let never_recorded = driver.create_event().expect("the driver is not broken");
    assert!(anchor.host_time(&driver, never_recorded).is_none());
}

#[test]
fn a_renewed_anchor_uses_the_other_event() {
    let driver = FakeDriver::new();
    let mut anchor = anchor(&driver);
    let first = anchor.event();
    assert!(first.is_some());
    assert_eq!(anchor.renew_if_old(&driver), Ok(None), "it is new");
    assert_eq!(anchor.event(), first);
    age(&mut anchor);
    assert_eq!(anchor.renew_if_old(&driver), Ok(first));
    assert!(anchor.event().is_some() && anchor.event() != first);
}

#[test]
fn an_anchor_that_cannot_be_renewed_stays_in_use() {
    let driver = FakeDriver::new();
    let mut anchor = anchor(&driver);
    let first = anchor.event();
    let time = |anchor: &Anchor| anchor.host_time(&driver, event_at(&driver, 101.0));
    let known = time(&anchor).expect("the anchor was passed").wall;
    // The device does not pass the event in time.
    driver.hold();
    age(&mut anchor);
    assert_eq!(anchor.renew_if_old(&driver), Ok(None));
    assert_eq!(anchor.event(), first);
    // The driver refuses to record it.
    driver.break_call("cuEventRecord", 1);
    age(&mut anchor);
    let refused = anchor.renew_if_old(&driver);
    assert_eq!(refused.map_err(|failed| failed.call), Err("cuEventRecord"));
    assert_eq!(anchor.event(), first);
    assert_eq!(time(&anchor).map(|time| time.wall), Some(known));
}

#[test]
fn an_anchor_that_the_device_never_passed_is_unknown() {
    let driver = FakeDriver::new();
    driver.hold();
    let mut anchor = Anchor::new(&driver).expect("the driver is not broken");
    assert_eq!(anchor.renew_if_old(&driver), Ok(None));
    assert!(anchor.event().is_none() && anchor.uncertainty().is_none());
    assert!(anchor.host_time(&driver, event_at(&driver, 1.0)).is_none());
    driver.release();
    age(&mut anchor);
    assert_eq!(anchor.renew_if_old(&driver), Ok(None), "no former anchor");
    assert!(anchor.event().is_some());
}

#[test]
fn an_anchor_that_cannot_be_created_leaves_nothing_behind() {
    let driver = FakeDriver::new();
    driver.break_call("cuEventCreate", 2);
    assert!(Anchor::new(&driver).is_err());
    assert_eq!(driver.calls("cuStreamDestroy_v2"), 1);
    driver.repair("cuEventCreate");
    anchor(&driver).destroy(&driver);
    assert_eq!(driver.events(), 0);
    assert_eq!(driver.calls("cuStreamDestroy_v2"), 2);
}

#[test]
fn the_drift_is_measured_from_one_anchor_to_the_next() {
    let begin = SystemTime::UNIX_EPOCH;
    let calibration = |wall| Calibration {
        wall,
        uncertainty_ns: 10_000.0,
        rate: 1.0,
        rate_error: UNKNOWN_DRIFT,
    };
    // A second of the device is this much of the host's.
    for (host_ns, rate) in [
        (1_000_050_000, 1.000_05),
        (999_990_000, 0.999_99),
        // The host's clock was set.
        (2_000_000_000, 1.0),
        (0, 1.0),
    ] {
        let driver = FakeDriver::new();
        let mut anchor = anchor(&driver);
        let [before, after] = [0.0, 1000.0].map(|at| event_at(&driver, at));
        anchor.events[0] = after;
        anchor.calibration = Some(calibration(begin + Duration::from_nanos(host_ns)));
        anchor.measure_drift(&driver, before, calibration(begin));
        let measured = anchor.calibration.expect("it was set");
        assert!((measured.rate - rate).abs() < 1e-9, "{}", measured.rate);
        let is_measured = measured.rate_error < UNKNOWN_DRIFT / 2.0;
        assert_eq!(is_measured, (rate - 1.0).abs() > 0.0);
    }
}
