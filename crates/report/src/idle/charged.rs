//! Charging times to functions.

use std::collections::HashMap;

use super::shown;
use super::verdict::is_step;
use super::{BusyTime, DeviceFunction, DeviceSegment, DeviceState, IdleCharge};
use crate::in_order::InOrder as _;
use crate::timeline::Timeline;
use crate::walk::{NONE, Visit, Walk};

/// What is needed to charge times to functions: the forest of calls, and their names.
pub(super) struct Charged<'t> {
    timeline: &'t Timeline,
    callers: &'t [u32],
    /// For each slice, the number of its name's text.
    texts: Vec<u32>,
    names: Vec<(&'t str, &'t str)>,
}

/// Idle time: all of it, and the part in launch calls.
#[derive(Clone, Copy, Default)]
struct Waited {
    all: i64,
    in_call: i64,
}

impl Waited {
    fn add(&mut self, other: Self) {
        self.all = self.all.saturating_add(other.all);
        self.in_call = self.in_call.saturating_add(other.in_call);
    }
}

/// The times of a function, and how many of its calls the walk is in.
#[derive(Clone, Copy, Default)]
struct Tally {
    own: Waited,
    inclusive: Waited,
    open: u32,
}

impl<'t> Charged<'t> {
    pub(super) fn of(timeline: &'t Timeline, callers: &'t [u32]) -> Self {
        let mut names: Vec<(&str, &str)> = Vec::new();
        let mut numbers = HashMap::new();
        let mut number_of = |name: u32| {
            let name = timeline.names.get(name as usize);
            let (text, location) =
                name.map_or(("(unknown)", ""), |name| (&*name.text, &*name.location));
            let number = *numbers.entry(text).or_insert_with(|| {
                names.push((text, location));
                names.len() - 1
            });
            // A name of several places has none.
            let known = &mut names[number].1;
            if *known != location {
                *known = "";
            }
            u32::try_from(number).unwrap_or(NONE)
        };
        // Many slices have one name.
        let mut known: HashMap<u32, u32> = HashMap::new();
        let texts = timeline.slices.iter().map(|slice| {
            let number = known.entry(slice.name);
            *number.or_insert_with(|| number_of(slice.name))
        });
        Self {
            texts: texts.collect(),
            timeline,
            callers,
            names,
        }
    }

    /// Returns the call around a slice, or [`NONE`].
    pub(super) fn caller(&self, slice: u32) -> u32 {
        self.callers.get(slice as usize).copied().unwrap_or(NONE)
    }

    /// Returns the number of the text of a slice; [`NONE`] for none.
    pub(super) fn text_of(&self, slice: u32) -> u32 {
        self.texts.get(slice as usize).copied().unwrap_or(NONE)
    }

    /// Returns the text of this number, and its location.
    pub(super) fn name(&self, text: u32) -> Option<(&'t str, &'t str)> {
        self.names.get(text as usize).copied()
    }

    /// Returns for each slice whether it is a call of this text, or is inside of one if `is_inclusive`.
    pub(super) fn calls_of(&self, text: u32, is_inclusive: bool) -> Vec<bool> {
        let mut inside: Vec<bool> = Vec::with_capacity(self.texts.len());
        // A call comes after its caller.
        for (own, caller) in self.texts.iter().zip(self.callers) {
            let is_around = is_inclusive && inside.get(*caller as usize) == Some(&true);
            inside.push(*own == text || is_around);
        }
        inside
    }

    /// Returns the number of a text.
    pub(super) fn number(&self, name: &str) -> Option<u32> {
        let place = self.names.iter().position(|(text, _)| *text == name)?;
        u32::try_from(place).ok()
    }

    /// Adds up the idle times of segments by function.
    pub(super) fn charges<'s>(
        &self,
        segments: impl Iterator<Item = &'s DeviceSegment>,
    ) -> Vec<IdleCharge> {
        let mut outside = Tally::default();
        // The idle time of each call itself.
        let mut own: HashMap<u32, Waited> = HashMap::new();
        for segment in segments {
            let length = segment.end_ns.saturating_sub(segment.start_ns);
            let in_call = match segment.state {
                DeviceState::Host => 0,
                DeviceState::LaunchCall => length,
                _ => continue,
            };
            let waited = match segment.call {
                Some(call) => own.entry(call).or_default(),
                None => &mut outside.own,
            };
            waited.add(Waited {
                all: length,
                in_call,
            });
        }
        outside.inclusive = outside.own;
        let tallies = self.by_name(&own);
        let mut charges: Vec<IdleCharge> = tallies
            .into_iter()
            .map(|(text, tally)| {
                let (name, location) = self.names.get(text as usize).copied().unwrap_or_default();
                charge(Some(name), location, &tally)
            })
            .collect();
        if outside.own.all > 0 {
            charges.push(charge(None, "", &outside));
        }
        charges.order_by(|one, other| {
            let longest = (other.inclusive_ns, other.idle_ns).cmp(&(one.inclusive_ns, one.idle_ns));
            longest.then_with(|| one.name.cmp(&other.name))
        });
        charges
    }

    /// Adds up the busy times of segments by function.
    pub(super) fn busy(&self, segments: &[DeviceSegment]) -> Vec<BusyTime> {
        let mut own: HashMap<u32, Waited> = HashMap::new();
        let mut outside = 0_i64;
        for segment in segments {
            if segment.state != DeviceState::Busy {
                continue;
            }
            let sum = match segment.call {
                Some(call) => &mut own.entry(call).or_default().all,
                None => &mut outside,
            };
            *sum = sum.saturating_add(segment.end_ns.saturating_sub(segment.start_ns));
        }
        let tallies = self.by_name(&own).into_iter();
        let mut busy: Vec<BusyTime> = tallies
            .map(|(text, tally)| BusyTime {
                name: self
                    .names
                    .get(text as usize)
                    .map(|(name, _)| (*name).to_owned()),
                busy_ns: tally.own.all,
                inclusive_ns: tally.inclusive.all,
            })
            .collect();
        if outside > 0 {
            busy.push(BusyTime {
                name: None,
                busy_ns: outside,
                inclusive_ns: outside,
            });
        }
        busy.order_by(|one, other| {
            let longest = (other.inclusive_ns, other.busy_ns).cmp(&(one.inclusive_ns, one.busy_ns));
            longest.then_with(|| one.name.cmp(&other.name))
        });
        busy
    }

    /// Chooses the functions that are shown apart.
    pub(super) fn functions(&self, segments: &mut [DeviceSegment]) -> Vec<DeviceFunction> {
        let charged = segments
            .iter()
            .filter(|segment| shown::is_of_function(segment));
        let calls = charged.filter_map(|segment| segment.call);
        let visits: Vec<Visit> = self.walk(calls).collect();
        // A step is no function.
        let names = self.names.iter().map(|(name, location)| match name {
            name if is_step(name) => ("", *location),
            _ => (*name, *location),
        });
        let calls = shown::Calls {
            visits: &visits,
            functions: &self.texts,
            names: &names.collect::<Vec<_>>(),
        };
        shown::choose(segments, &calls)
    }

    /// Returns a walk through calls and those around them.
    fn walk(&self, calls: impl Iterator<Item = u32>) -> Walk {
        let mut is_charged = vec![false; self.timeline.slices.len()];
        for mut call in calls {
            while let Some(known @ false) = is_charged.get_mut(call as usize) {
                *known = true;
                call = self.callers.get(call as usize).copied().unwrap_or(NONE);
            }
        }
        Walk::new(self.callers, |index| is_charged[index])
    }

    /// Adds the times of calls to those of their functions, and of the functions around them.
    fn by_name(&self, own: &HashMap<u32, Waited>) -> HashMap<u32, Tally> {
        let mut tallies: HashMap<u32, Tally> = HashMap::new();
        if own.is_empty() {
            return tallies;
        }
        // The sums of the calls that the walk is in.
        let mut sums: Vec<Waited> = Vec::new();
        // Only calls with a charge below them matter.
        for visit in self.walk(own.keys().copied()) {
            match visit {
                Visit::Enter(index) => {
                    sums.push(Waited::default());
                    tallies.entry(self.texts[index]).or_default().open += 1;
                }
                Visit::Leave(index) => {
                    let call = u32::try_from(index).unwrap_or(NONE);
                    let own = own.get(&call).copied().unwrap_or_default();
                    let mut sum = sums.pop().unwrap_or_default();
                    sum.add(own);
                    if let Some(around) = sums.last_mut() {
                        around.add(sum);
                    }
                    let tally = tallies.entry(self.texts[index]).or_default();
                    tally.own.add(own);
                    tally.open -= 1;
                    // A call inside of one of the same function is in the time of that.
                    if tally.open == 0 {
                        tally.inclusive.add(sum);
                    }
                }
            }
        }
        tallies
    }
}

fn charge(name: Option<&str>, location: &str, tally: &Tally) -> IdleCharge {
    IdleCharge {
        name: name.map(str::to_owned),
        location: location.to_owned(),
        idle_ns: tally.own.all,
        in_call_ns: tally.own.in_call,
        inclusive_ns: tally.inclusive.all,
        inclusive_in_call_ns: tally.inclusive.in_call,
    }
}
