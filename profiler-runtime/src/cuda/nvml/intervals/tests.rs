use proptest::prelude::*;

use super::*;

/// A tick is a nanosecond, and a bin is a tick.
fn span(name: u32, begin: u64, end: u64) -> GpuSpan {
    let ns = (end - begin) as f64;
    GpuSpan {
        name,
        key: None,
        parent: None,
        begin,
        end,
        ns,
        own: ns,
    }
}

fn measured(joules: f64, ns: f64) -> Measured {
    Measured {
        source: EnergySource::Counter,
        joules,
        ns,
    }
}

/// Intervals of ten nanoseconds from 0 on, with these energies.
fn tens(joules: &[f64]) -> Intervals {
    let mut intervals = Intervals::default();
    intervals.begin(0);
    for (at, joules) in (1..).zip(joules) {
        intervals.measure(at * 10, measured(*joules, 10.0));
    }
    intervals
}

fn joules(energy: &DeviceEnergy, name: u32) -> f64 {
    let known = energy.names.iter().find(|share| share.name == name);
    known.map_or(0.0, |share| share.joules)
}

#[track_caller]
fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
}

/// The sum of all shares and of the rest is the energy that was measured.
#[track_caller]
fn sums_up(energy: &DeviceEnergy, all: f64) {
    let shares: f64 = energy.names.iter().map(|share| share.joules).sum();
    close(shares + energy.unmeasured_joules, energy.joules);
    close(energy.joules, all);
    assert!(energy.unmeasured_joules >= 0.0, "{energy:?}");
}

#[test]
fn the_children_of_a_lost_scope_belong_to_the_scope_around_it() {
    let mut intervals = tens(&[100.0, 100.0]);
    let inner = GpuSpan {
        parent: Some(8),
        ..span(1, 0, 10)
    };
    intervals.add(&inner, 1);
    intervals.lose(8, Some(9));
    intervals.lose(7, None);
    let outer = GpuSpan {
        key: Some(9),
        own: 10.0,
        ..span(2, 0, 20)
    };
    intervals.add(&outer, 1);
    let energy = intervals.energy(None);
    close(joules(&energy, 1), 100.0);
    close(joules(&energy, 2), 100.0);
}

#[test]
fn times_without_samples_have_no_energy() {
    let mut intervals = Intervals::default();
    intervals.add(&span(1, 0, 10), 1);
    assert_eq!(
        intervals.energy(None),
        DeviceEnergy {
            step_ns: STEP_NS,
            ..DeviceEnergy::default()
        }
    );
    intervals.begin(10);
    intervals.measure(20, measured(100.0, 10.0));
    intervals.pause();
    intervals.add(&span(2, 0, 40), 1);
    intervals.begin(40);
    intervals.measure(50, measured(100.0, 10.0));
    intervals.add(&span(3, 15, 45), 1);
    let energy = intervals.energy(None);
    close(joules(&energy, 2), 100.0 * 10.0 / 15.0);
    close(joules(&energy, 3), 100.0 * 5.0 / 15.0 + 50.0);
    sums_up(&energy, 200.0);
}

#[test]
fn a_window_has_the_parts_of_the_intervals_in_it() {
    let mut intervals = tens(&[100.0, 200.0, 300.0]);
    intervals.add(&span(1, 10, 20), 1);
    let energy = intervals.energy(Some((5, 20)));
    close(joules(&energy, 1), 200.0);
    sums_up(&energy, 250.0);
    assert_eq!((energy.intervals, energy.covered_ns), (2, 15.0));
    sums_up(&intervals.energy(Some((30, 60))), 0.0);
}

#[test]
fn an_interval_is_cut_where_a_window_opens_or_closes() {
    let mut intervals = tens(&[100.0]);
    intervals.add(&span(1, 10, 13), 100);
    intervals.cut(14, 100);
    intervals.add(&span(2, 14, 16), 100);
    intervals.cut(18, 100);
    // In the past, or in the interval before.
    intervals.cut(12, 1);
    intervals.cut(5, 1);
    intervals.add(&span(3, 18, 24), 100);
    intervals.measure(20, measured(100.0, 10.0));
    let window = intervals.energy(Some((14, 18)));
    let names: Vec<u32> = window.names.iter().map(|share| share.name).collect();
    assert_eq!(names, [2]);
    close(joules(&window, 2), 20.0);
    sums_up(&window, 40.0);
    let energy = intervals.energy(None);
    assert_eq!(energy.intervals, 2);
    close(joules(&energy, 1), 30.0);
    sums_up(&energy, 200.0);
    for at in 0..1_000 {
        intervals.cut(21 + at, 1);
        assert!(intervals.bins.len() <= 2 * MAX_BINS);
    }
}

#[test]
fn without_a_counter_the_step_is_the_mean_interval() {
    let mut intervals = Intervals::default();
    intervals.begin(0);
    for (at, ns) in [(10, 1e9), (20, 3e9)] {
        let source = EnergySource::Power;
        let power = Measured {
            source,
            ..measured(100.0, ns)
        };
        intervals.measure(at, power);
    }
    close(intervals.energy(None).step_ns, 2e9);
    close(tens(&[1.0]).energy(None).step_ns, STEP_NS);
}

#[test]
fn memory_is_bounded_and_sums_stay_exact() {
    let mut intervals = tens(&[]);
    let count = 20 * MAX_INTERVALS as u64;
    for interval in 0..count {
        let start = interval * 10;
        // Hundreds of names, which are others each time.
        for name in 0..40 {
            let name = name + u32::try_from(interval % 50).expect("small") * 40;
            intervals.add(&span(name, start, start + 1), 1);
        }
        intervals.measure(start + 10, measured(100.0, 10.0));
        assert!(intervals.measured.len() <= MAX_INTERVALS && intervals.usages <= MAX_USAGES);
    }
    let before = intervals.energy(None);
    sums_up(&before, 100.0 * count as f64);
    // 40 of 40 are busy: all is shared out.
    close(before.unmeasured_joules, 0.0);

    let mut idle = tens(&vec![100.0; 5_000]);
    assert!(idle.measured.len() <= MAX_INTERVALS);
    idle.add(&span(1, 0, 25_000), 1);
    let energy = idle.energy(None);
    close(joules(&energy, 1), 250_000.0);
    sums_up(&energy, 500_000.0);
}

#[test]
fn a_time_that_is_read_after_its_interval_was_merged_gets_a_share_of_what_is_left() {
    let mut intervals = tens(&vec![100.0; MAX_INTERVALS]);
    intervals.add(&span(1, 0, 5), 1);
    intervals.measure(10 * (MAX_INTERVALS as u64 + 1), measured(100.0, 10.0));
    assert!(intervals.measured[0].merged > 1);
    close(joules(&intervals.energy(None), 1), 50.0);
    intervals.add(&span(2, 0, 10), 1);
    let energy = intervals.energy(None);
    close(joules(&energy, 1), 50.0);
    close(joules(&energy, 2), 100.0);
    // More than there is left.
    for _ in 0..10 {
        intervals.add(&span(3, 0, 20), 1);
    }
    let energy = intervals.energy(None);
    close(joules(&energy, 1), 50.0);
    sums_up(&energy, 100.0 * (MAX_INTERVALS as f64 + 1.0));
}

#[test]
fn the_children_of_a_long_scope_are_bounded() {
    let mut intervals = tens(&[]);
    let children = 4 * MAX_COVERED as u64;
    for child in 0..children {
        let at = child * 10;
        let child = GpuSpan {
            parent: Some(9),
            ..span(1, at, at + 5)
        };
        intervals.add(&child, 1);
        intervals.measure(at + 10, measured(100.0, 10.0));
        let covered = intervals.children.get(&9).map_or(0, BTreeMap::len);
        assert!(covered <= MAX_COVERED);
    }
    for parent in 0..2 * MAX_PARENTS as u64 {
        let child = GpuSpan {
            parent: Some(parent + 100),
            ..span(1, 0, 0)
        };
        intervals.add(&child, 1);
    }
    assert!(intervals.children.len() <= MAX_PARENTS);
}

#[test]
fn a_sampler_that_is_late_has_longer_bins() {
    let mut intervals = tens(&[]);
    for at in 0..10_000 {
        intervals.add(&span(1, at, at + 1), 1);
        assert!(intervals.bins.len() <= MAX_BINS);
    }
    // Nothing was read for a long time.
    intervals.add(&span(1, 10_000, 5_000_000), 1);
    assert!(intervals.bins.len() <= MAX_BINS);
    intervals.measure(5_000_000, measured(500.0, 5e6));
    let energy = intervals.energy(None);
    close(joules(&energy, 1), 500.0);
}

/// A scope of a random program, with those inside it. Times are from its begin.
#[derive(Clone, Debug)]
struct Random {
    name: u32,
    before: u64,
    length: u64,
    inside: Vec<Random>,
}

fn scopes() -> impl Strategy<Value = Vec<Random>> {
    let leaf = (0..4_u32, 0..30_u64, 0..90_u64).prop_map(|(name, before, length)| Random {
        name,
        before,
        length,
        inside: Vec::new(),
    });
    let nested = leaf.prop_recursive(3, 24, 4, |inside| {
        (
            0..4_u32,
            0..30_u64,
            0..60_u64,
            prop::collection::vec(inside, 0..4),
        )
            .prop_map(|(name, before, length, inside)| Random {
                name,
                before,
                length,
                inside,
            })
    });
    prop::collection::vec(nested, 0..6)
}

/// The self time of each name in each nanosecond, and the scopes in the order of their ends.
#[derive(Default)]
struct Model {
    own: Vec<(u32, u64)>,
    ended: Vec<GpuSpan>,
    keys: u64,
}

impl Model {
    /// Runs a scope. Returns when it has ended.
    fn run(&mut self, scope: &Random, at: u64, parent: Option<u64>) -> u64 {
        self.keys += 1;
        let (key, begin) = (self.keys, at + scope.before);
        let mut now = begin;
        let mut covered = 0;
        for inside in &scope.inside {
            let from = now;
            now = self.run(inside, now, Some(key));
            covered += now - from - inside.before;
            self.own
                .extend((from..from + inside.before).map(|at| (scope.name, at)));
        }
        self.own
            .extend((now..now + scope.length).map(|at| (scope.name, at)));
        let end = now + scope.length;
        self.ended.push(GpuSpan {
            key: Some(key),
            parent,
            own: (end - begin - covered) as f64,
            ..span(scope.name, begin, end)
        });
        end
    }
}

proptest! {
    /// Samples at any times, whose energies arrive late, and scopes of any length on two streams.
    #[test]
    fn shares_are_those_of_a_model_that_knows_every_nanosecond(
        streams in prop::collection::vec(scopes(), 1..3),
        samples in prop::collection::vec((1..60_u64, 0..1_000_u32, 0..3_u64), 1..30),
    ) {
        let mut model = Model { keys: 0, ..Model::default() };
        for scopes in &streams {
            let mut now = 0;
            for scope in scopes {
                now = model.run(scope, now, None);
            }
        }
        // Scopes of all streams, in the order of their ends. Those inside come first.
        model.ended.sort_by_key(|span| span.end);
        let mut intervals = Intervals::default();
        intervals.begin(0);
        let mut ended = model.ended.iter().peekable();
        let (mut at, mut all) = (0, 0.0);
        let mut expected = BTreeMap::<u32, f64>::new();
        for (length, energy, late) in samples {
            let from = at;
            at += length;
            while let Some(span) = ended.next_if(|span| span.end <= at + late) {
                intervals.add(span, 1);
            }
            let energy = f64::from(energy);
            intervals.measure(at, measured(energy, length as f64));
            all += energy;
            let busy: Vec<u32> = model
                .own
                .iter()
                .filter(|(_, own)| (from..at).contains(own))
                .map(|(name, _)| *name)
                .collect();
            for name in &busy {
                *expected.entry(*name).or_default() += energy / (busy.len() as f64).max(length as f64);
            }
        }
        for span in ended {
            intervals.add(span, 1);
        }
        let found = intervals.energy(None);
        for name in 0..4 {
            let expected = expected.get(&name).copied().unwrap_or(0.0);
            let found = joules(&found, name);
            prop_assert!((found - expected).abs() < 1e-6, "{name}: {found}, not {expected}");
        }
        let shares: f64 = found.names.iter().map(|share| share.joules).sum();
        prop_assert!((shares + found.unmeasured_joules - all).abs() < 1e-6);
        prop_assert!(intervals.children.is_empty());
    }
}
