//! Charging times to functions.

use std::collections::HashMap;

use super::shown;
use super::{BusyTime, DeviceFunction, DeviceSegment, DeviceState, IdleCharge};
use crate::in_order::InOrder as _;
use crate::timeline::Timeline;
use crate::walk::{NONE, Visit, Walk};
use crate::well_known::is_step_range;

/// What is needed to charge times to functions: the forest of calls, and their names.
pub(super) struct Charged<'t> {
    callers: &'t [u32],
    /// For each slice, the number of its name's text.
    texts: Vec<u32>,
    names: Vec<(&'t str, &'t str)>,
    /// For each slice, the number of its path; [`NONE`] for those whose callers are in a circle.
    path_of: Vec<u32>,
    /// For each path, the one around it and the number of its last text.
    paths: Vec<(u32, u32)>,
}

/// Idle time: all of it, and the part in launch calls.
#[derive(Clone, Copy, Default)]
pub(super) struct Waited {
    pub(super) all: i64,
    in_call: i64,
}

impl Waited {
    fn add(&mut self, other: Self) {
        self.all = self.all.saturating_add(other.all);
        self.in_call = self.in_call.saturating_add(other.in_call);
    }
}

/// The times of the segments of one path, without those inside of it.
#[derive(Clone, Copy, Default)]
pub(super) struct PathTimes {
    /// Between the first work and the last.
    pub(super) idle: Waited,
    pub(super) before_first: Waited,
    pub(super) busy: i64,
}

/// The times of all segments of a device: there are few paths, however many segments.
pub(super) struct Times {
    /// By the places of paths in the forest.
    pub(super) of_paths: Vec<PathTimes>,
    pub(super) outside: PathTimes,
}

impl Times {
    /// Returns no time for each path of a forest.
    pub(super) fn none(forest: &Forest<'_>) -> Self {
        Self {
            of_paths: vec![PathTimes::default(); forest.functions.len()],
            outside: PathTimes::default(),
        }
    }

    /// Adds the time of a segment, if that belongs to a function, or to no function.
    pub(super) fn add(&mut self, forest: &Forest<'_>, segment: &DeviceSegment) {
        let length = segment.end_ns.saturating_sub(segment.start_ns);
        let in_call = match segment.state {
            DeviceState::Busy | DeviceState::Host => 0,
            DeviceState::LaunchCall => length,
            _ => return,
        };
        let path = forest.place(segment);
        let path = path.and_then(|place| self.of_paths.get_mut(place));
        let times = path.unwrap_or(&mut self.outside);
        let idle = match segment.state {
            DeviceState::Busy => {
                times.busy = times.busy.saturating_add(length);
                return;
            }
            _ if segment.is_before_first => &mut times.before_first,
            _ => &mut times.idle,
        };
        let all = length;
        idle.add(Waited { all, in_call });
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
        let texts: Vec<u32> = texts.collect();
        let mut path_of = vec![NONE; texts.len()];
        let mut paths = Vec::new();
        let mut known = HashMap::new();
        for visit in Walk::new(callers, |_| true) {
            if let Visit::Enter(index) = visit {
                let around = path_of.get(callers[index] as usize);
                let path = (around.copied().unwrap_or(NONE), texts[index]);
                path_of[index] = *known.entry(path).or_insert_with(|| {
                    paths.push(path);
                    u32::try_from(paths.len() - 1).unwrap_or(NONE)
                });
            }
        }
        Self {
            callers,
            texts,
            names,
            path_of,
            paths,
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

    /// Returns the paths of the calls of segments, and the paths around them. `seen` is `false` for each path, and is so again
    /// afterwards.
    pub(super) fn forest(&self, segments: &[DeviceSegment], seen: &mut Vec<bool>) -> Forest<'_> {
        seen.resize(self.paths.len(), false);
        let mut paths = Vec::new();
        for call in segments.iter().filter_map(|segment| segment.call) {
            let mut path = self.path_of.get(call as usize).copied().unwrap_or(NONE);
            while let Some(known @ false) = seen.get_mut(path as usize) {
                *known = true;
                paths.push(path);
                path = self.paths[path as usize].0;
            }
        }
        for path in &paths {
            seen[*path as usize] = false;
        }
        paths.sort_unstable();
        let mut places = vec![NONE; self.paths.len()];
        for (place, path) in (0..).zip(&paths) {
            places[*path as usize] = place;
        }
        let place_of = |path: u32| places.get(path as usize).copied().unwrap_or(NONE);
        let all = || paths.iter().map(|path| self.paths[*path as usize]);
        let parents: Vec<u32> = all().map(|(parent, _)| place_of(parent)).collect();
        let mut texts: Vec<u32> = all().map(|(_, text)| text).collect();
        texts.sort_unstable();
        texts.dedup();
        let function = |text: u32| {
            let place = texts.binary_search(&text);
            place.map_or(NONE, |place| u32::try_from(place).unwrap_or(NONE))
        };
        Forest {
            functions: all().map(|(_, text)| function(text)).collect(),
            visits: Walk::new(&parents, |_| true).collect(),
            texts,
            places,
            path_of: &self.path_of,
        }
    }

    /// Adds up idle times by function. `times` says which of those of a path.
    pub(super) fn charges(
        &self,
        forest: &Forest<'_>,
        times: &Times,
        of: impl Fn(&PathTimes) -> Waited,
    ) -> Vec<IdleCharge> {
        let own: Vec<Waited> = times.of_paths.iter().map(&of).collect();
        let mut charges: Vec<IdleCharge> = forest
            .by_function(&own)
            .map(|(text, tally)| {
                let (name, location) = self.name(text).unwrap_or_default();
                charge(Some(name), location, &tally)
            })
            .collect();
        let outside = of(&times.outside);
        if outside.all > 0 {
            let outside = Tally {
                own: outside,
                inclusive: outside,
                open: 0,
            };
            charges.push(charge(None, "", &outside));
        }
        charges.order_by(|one, other| {
            let longest = (other.inclusive_ns, other.idle_ns).cmp(&(one.inclusive_ns, one.idle_ns));
            longest.then_with(|| one.name.cmp(&other.name))
        });
        charges
    }

    /// Adds up the busy times by function.
    pub(super) fn busy(&self, forest: &Forest<'_>, times: &Times) -> Vec<BusyTime> {
        let own = times.of_paths.iter().map(|times| Waited {
            all: times.busy,
            in_call: 0,
        });
        let mut busy: Vec<BusyTime> = forest
            .by_function(&own.collect::<Vec<_>>())
            .map(|(text, tally)| BusyTime {
                name: self.name(text).map(|(name, _)| name.to_owned()),
                busy_ns: tally.own.all,
                inclusive_ns: tally.inclusive.all,
            })
            .collect();
        let outside = times.outside.busy;
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
    pub(super) fn functions(
        &self,
        forest: &Forest<'_>,
        times: &Times,
        segments: &mut [DeviceSegment],
    ) -> Vec<DeviceFunction> {
        // A step is no function.
        let names = forest.texts.iter().map(|text| match self.name(*text) {
            Some((name, location)) if is_step_range(name) => ("", location),
            name => name.unwrap_or_default(),
        });
        let calls = shown::Calls {
            visits: &forest.visits,
            forest,
            functions: &forest.functions,
            names: &names.collect::<Vec<_>>(),
        };
        shown::choose(segments, &calls, times)
    }
}

/// The paths that the calls of a device's segments have, and those around them. Calls whose functions are the same from the
/// outermost on have one path: there are few of these, however many calls.
pub(super) struct Forest<'c> {
    /// The place of each path in the forest; [`NONE`] for those of other devices alone. Functions and the steps of the walk are by
    /// place.
    places: Vec<u32>,
    functions: Vec<u32>,
    /// The number of the text of each function.
    texts: Vec<u32>,
    visits: Vec<Visit>,
    path_of: &'c [u32],
}

impl Forest<'_> {
    /// Returns the place of the path of a segment's call.
    pub(super) fn place(&self, segment: &DeviceSegment) -> Option<usize> {
        let path = self.path_of.get(segment.call? as usize)?;
        let place = self.places.get(*path as usize)?;
        (*place != NONE).then_some(*place as usize)
    }

    /// Adds the times of paths to the times of their functions, and of the functions around them. Returns the functions that have
    /// some, with the numbers of their texts.
    fn by_function(&self, own: &[Waited]) -> impl Iterator<Item = (u32, Tally)> {
        let mut tallies = vec![Tally::default(); self.texts.len()];
        // The sums of the paths that the walk is in.
        let mut sums: Vec<Waited> = Vec::new();
        for visit in &self.visits {
            match *visit {
                Visit::Enter(place) => {
                    sums.push(Waited::default());
                    tallies[self.functions[place] as usize].open += 1;
                }
                Visit::Leave(place) => {
                    let mut sum = sums.pop().unwrap_or_default();
                    sum.add(own[place]);
                    if let Some(around) = sums.last_mut() {
                        around.add(sum);
                    }
                    let tally = &mut tallies[self.functions[place] as usize];
                    tally.own.add(own[place]);
                    tally.open -= 1;
                    // A call inside of one of the same function is in the time of that.
                    if tally.open == 0 {
                        tally.inclusive.add(sum);
                    }
                }
            }
        }
        let all = self.texts.iter().copied().zip(tallies);
        all.filter(|(_, tally)| tally.inclusive.all > 0)
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
