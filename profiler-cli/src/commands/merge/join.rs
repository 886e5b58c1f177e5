//! One time line of several ranks.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use profiler_report::internal::{InOrder as _, STEPS};
use profiler_report::{Slice, SliceName, Step, Timeline, Track};

use crate::lanes::Lanes;

/// A rank, and how far its clock is ahead.
pub(super) struct Member<'t> {
    pub(super) rank: u64,
    pub(super) timeline: &'t Timeline,
    pub(super) ahead_ns: i64,
}

impl Member<'_> {
    fn start(&self) -> i64 {
        self.timeline.start_unix_ns - self.ahead_ns
    }
}

/// Joins the time lines of ranks. Each rank is a process of its own, and has a track of its steps, unless they are slices
/// already.
pub(super) fn join(members: &[Member<'_>]) -> Timeline {
    let start = members.iter().map(Member::start).min().unwrap_or(0);
    let mut joined = Joined::default();
    joined.timeline.start_unix_ns = start;
    joined.timeline.title = format!("{} ranks", members.len());
    joined.timeline.has_kernels = members.iter().all(|member| member.timeline.has_kernels);
    joined.timeline.cycle = agreed(members, |line| line.cycle);
    joined.timeline.step_num = agreed(members, |line| line.step_num);
    joined.timeline.metadata = metadata(members);
    let mut processes = HashSet::new();
    // Ranks on different machines may have equal process ids.
    let are_distinct = members
        .iter()
        .all(|member| process(member).is_none_or(|process| processes.insert(process)));
    // The slices of threads come before those of streams.
    let mut moved: Vec<Vec<u32>> = Vec::new();
    for member in members {
        let process = if are_distinct {
            None
        } else {
            Some(1_000_000 + member.rank)
        };
        joined.add_tables(member, member.start() - start, process);
        moved.push(vec![0; member.timeline.slices.len()]);
    }
    for is_of_gpu in [false, true] {
        if is_of_gpu {
            joined.add_launches(members, start, &moved);
        }
        for (number, member) in members.iter().enumerate() {
            joined.add_slices(
                member,
                number,
                is_of_gpu,
                member.start() - start,
                &mut moved[number],
            );
        }
    }
    let steps = &mut joined.timeline.steps;
    steps.order_by_key(|step| (step.start_ns, step.number));
    joined.timeline
}

/// Returns what all ranks say; `None` if they differ.
fn agreed(members: &[Member<'_>], of: impl Fn(&Timeline) -> Option<u64>) -> Option<u64> {
    let mut all = members.iter().map(|member| of(member.timeline));
    let first = all.next()?;
    first.filter(|_| all.all(|other| other == first))
}

/// Returns the pairs of all ranks. One that is not the same on all has the rank in its key.
fn metadata(members: &[Member<'_>]) -> Vec<(String, String)> {
    let mut counts: HashMap<&(String, String), usize> = HashMap::new();
    for member in members {
        for pair in &member.timeline.metadata {
            *counts.entry(pair).or_default() += 1;
        }
    }
    let mut all = Vec::new();
    for (place, member) in members.iter().enumerate() {
        for pair in &member.timeline.metadata {
            let (key, value) = pair;
            let is_common = counts.get(pair) == Some(&members.len());
            if !is_common {
                all.push((format!("rank {}: {key}", member.rank), value.clone()));
            } else if place == 0 {
                all.push(pair.clone());
            }
        }
    }
    all
}

fn process(member: &Member<'_>) -> Option<u64> {
    member.timeline.tracks.first().map(|track| track.process)
}

#[derive(Default)]
struct Joined {
    timeline: Timeline,
    names: HashMap<SliceName, u32>,
    /// For each rank, the numbers of its first track, shapes and work, and those of its names and launches.
    bases: Vec<Bases>,
}

struct Bases {
    track: u32,
    shapes: u32,
    categories: u32,
    work: u32,
    details: u32,
    names: Vec<u32>,
    launches: Vec<u32>,
    /// The steps that are no slices, in the order of their starts, each with its track.
    steps: Vec<(Step, u32)>,
}

impl Joined {
    fn add_tables(&mut self, member: &Member<'_>, shift: i64, process: Option<u64>) {
        let (line, rank) = (member.timeline, member.rank);
        let to_number = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let track = to_number(self.timeline.tracks.len());
        let shapes = to_number(self.timeline.shapes.len());
        let categories = to_number(self.timeline.categories.len());
        let work = to_number(self.timeline.work.len());
        let details = to_number(self.timeline.details.len());
        let names = line.names.iter().map(|name| self.name(name)).collect();
        self.bases.push(Bases {
            track,
            shapes,
            categories,
            work,
            details,
            names,
            launches: Vec::new(),
            steps: Vec::new(),
        });
        let tracks = line.tracks.iter().map(|track| {
            let mut track = track.clone();
            track.rank = Some(rank);
            track.process = process.unwrap_or(track.process);
            track.process_name = format!("rank {rank}: {}", track.process_name);
            track
        });
        self.timeline.tracks.extend(tracks);
        self.timeline.shapes.extend(line.shapes.iter().cloned());
        let categories = line.categories.iter().cloned();
        self.timeline.categories.extend(categories);
        self.timeline.work.extend(line.work.iter().copied());
        self.timeline.details.extend(line.details.iter().cloned());
        let devices = line.devices.iter().map(|device| {
            let mut device = *device;
            device.rank = Some(rank);
            device
        });
        self.timeline.devices.extend(devices);
        let names = self.bases.last().map_or(&[][..], |bases| &bases.names);
        let waits = line.waits.iter().map(|wait| {
            let mut wait = *wait;
            wait.rank = Some(rank);
            wait.name = names.get(wait.name as usize).copied().unwrap_or(0);
            wait.start_ns += shift;
            wait
        });
        self.timeline.waits.extend(waits);
        let gaps = line.kernel_gaps.iter().map(|gap| {
            let mut gap = gap.clone();
            gap.rank = Some(rank);
            gap.start_ns += shift;
            gap
        });
        self.timeline.kernel_gaps.extend(gaps);
        let world_size = self.timeline.world_size.max(line.world_size);
        self.timeline.world_size = world_size;
        self.timeline.duration_ns = self.timeline.duration_ns.max(shift + line.duration_ns);
        let replays = line.replays.iter().map(|replay| {
            let mut replay = *replay;
            replay.name = self
                .bases
                .last()
                .and_then(|bases| bases.names.get(replay.name as usize).copied())
                .unwrap_or(0);
            replay.track = replay.track.map(|own| own + track);
            replay.noticed_ns += shift;
            replay
        });
        self.timeline.replays.extend(replays);
        let counters = line.counters.iter().map(|counter| {
            let mut counter = counter.clone();
            counter.name = format!("rank {rank}: {}", counter.name);
            for (at, _) in &mut counter.samples {
                *at += shift;
            }
            counter
        });
        self.timeline.counters.extend(counters);
        let processor = line.processor.iter().map(|of_thread| {
            let mut of_thread = of_thread.clone();
            of_thread.track += track;
            for sample in &mut of_thread.samples {
                sample.at_ns += shift;
            }
            of_thread
        });
        self.timeline.processor.extend(processor);
        let missing = line.missing.iter();
        let missing = missing.map(|(reason, count)| (format!("{reason} (rank {rank})"), *count));
        self.timeline.missing.extend(missing);
        let steps = self.add_step_tracks(member, process);
        if let Some(bases) = self.bases.last_mut() {
            bases.steps = steps;
        }
    }

    /// Adds tracks for the steps of a rank that are no slices: as many as there are steps at once. Returns these steps in the
    /// order of their starts, each with its track.
    fn add_step_tracks(&mut self, member: &Member<'_>, process: Option<u64>) -> Vec<(Step, u32)> {
        let steps = member.timeline.steps.iter();
        let mut steps: Vec<Step> = steps.filter(|step| step.slice.is_none()).copied().collect();
        steps.order_by_key(|step| step.start_ns);
        let mut lanes = Lanes::new(u32::MAX);
        let mut tracks = Vec::new();
        let mut with_tracks = Vec::with_capacity(steps.len());
        for step in steps {
            let Some(lane) = lanes.take(step.start_ns, step.end_ns) else {
                break;
            };
            if lane as usize > tracks.len() {
                tracks.push(self.add_step_track(member, process, tracks.len()));
            }
            with_tracks.push((step, tracks[lane as usize - 1]));
        }
        with_tracks
    }

    fn add_step_track(&mut self, member: &Member<'_>, process: Option<u64>, beside: usize) -> u32 {
        let first = member.timeline.tracks.first();
        let process_name = first.map_or("", |first| &first.process_name);
        self.timeline.tracks.push(Track {
            name: match beside {
                0 => "steps".to_owned(),
                _ => format!("steps, overlapping {beside}"),
            },
            rank: Some(member.rank),
            process: process.or(first.map(|first| first.process)).unwrap_or(0),
            process_name: format!("rank {}: {process_name}", member.rank),
            ..Track::default()
        });
        u32::try_from(self.timeline.tracks.len() - 1).unwrap_or(u32::MAX)
    }

    fn name(&mut self, name: &SliceName) -> u32 {
        if let Some(known) = self.names.get(name) {
            return *known;
        }
        let number = u32::try_from(self.timeline.names.len()).unwrap_or(u32::MAX);
        self.timeline.names.push(name.clone());
        self.names.insert(name.clone(), number);
        number
    }

    /// Adds the launches of all ranks in the order of their starts. `moved` are the slices of threads.
    fn add_launches(&mut self, members: &[Member<'_>], start: i64, moved: &[Vec<u32>]) {
        let mut launches = Vec::new();
        for (number, member) in members.iter().enumerate() {
            let shift = member.start() - start;
            let count = member.timeline.launches.len();
            self.bases[number].launches = vec![u32::MAX; count];
            let bases = &self.bases[number];
            for (index, launch) in member.timeline.launches.iter().enumerate() {
                let mut launch = *launch;
                launch.track += bases.track;
                launch.name = bases.names.get(launch.name as usize).copied().unwrap_or(0);
                launch.start_ns += shift;
                launch.parent = launch
                    .parent
                    .and_then(|parent| moved[number].get(parent as usize).copied());
                launch.slice = launch
                    .slice
                    .and_then(|slice| moved[number].get(slice as usize).copied());
                launches.push((number, index, launch));
            }
        }
        launches.order_by_key(|(number, _, launch)| (launch.start_ns, *number));
        for (place, (number, index, _)) in (0..).zip(&launches) {
            self.bases[*number].launches[*index] = place;
        }
        let launches = launches.into_iter().map(|(_, _, launch)| launch);
        self.timeline.launches = launches.collect();
    }

    fn add_slices(
        &mut self,
        member: &Member<'_>,
        number: usize,
        is_of_gpu: bool,
        shift: i64,
        moved: &mut [u32],
    ) {
        for (index, slice) in member.timeline.slices.iter().enumerate() {
            if slice.kind.is_on_gpu() != is_of_gpu {
                continue;
            }
            moved[index] = u32::try_from(self.timeline.slices.len()).unwrap_or(u32::MAX);
            let bases = &self.bases[number];
            let mut slice = *slice;
            slice.track += bases.track;
            slice.name = bases.names.get(slice.name as usize).copied().unwrap_or(0);
            slice.start_ns += shift;
            slice.shapes = slice.shapes.map(|own| own + bases.shapes);
            slice.category = slice.category.map(|own| own + bases.categories);
            slice.details = slice.details.map(|own| own + bases.details);
            slice.work = slice.work.map(|own| own + bases.work);
            let launch = |own: u32| bases.launches.get(own as usize).copied();
            slice.launch = slice.launch.and_then(launch);
            slice.parent = slice
                .parent
                .and_then(|parent| moved.get(parent as usize).copied());
            self.timeline.slices.push(slice);
        }
        if !is_of_gpu {
            self.add_step_slices(member, number, shift, moved);
        }
    }

    /// Returns the category of steps.
    fn annotation(&mut self) -> u32 {
        const ANNOTATION: &str = "user_annotation";
        let categories = &mut self.timeline.categories;
        let known = categories.iter().position(|known| **known == *ANNOTATION);
        let index = known.unwrap_or_else(|| {
            categories.push(Arc::from(ANNOTATION));
            categories.len() - 1
        });
        u32::try_from(index).unwrap_or(u32::MAX)
    }

    fn add_step_slices(&mut self, member: &Member<'_>, number: usize, shift: i64, moved: &[u32]) {
        let first = self.bases[number].track;
        let shifted = |step: &Step| {
            let mut step = *step;
            step.track = step.track.map(|own| own + first);
            step.start_ns += shift;
            step.end_ns += shift;
            step
        };
        for step in &member.timeline.steps {
            if let Some(slice) = step.slice {
                let mut step = shifted(step);
                step.slice = moved.get(slice as usize).copied();
                self.timeline.steps.push(step);
            }
        }
        let name = SliceName {
            text: Arc::from(STEPS),
            ..SliceName::default()
        };
        for (step, track) in std::mem::take(&mut self.bases[number].steps) {
            let mut step = shifted(&step);
            let mut slice = Slice::default();
            (slice.track, slice.name) = (track, self.name(&name));
            slice.start_ns = step.start_ns;
            slice.duration_ns = step.end_ns - step.start_ns;
            slice.self_ns = slice.duration_ns;
            slice.category = Some(self.annotation());
            step.slice = u32::try_from(self.timeline.slices.len()).ok();
            self.timeline.steps.push(step);
            self.timeline.slices.push(slice);
        }
    }
}

#[cfg(test)]
mod tests {
    use profiler_report::SliceKind;

    use super::super::made_up::Rank;
    use super::*;
    use crate::input::{Input, Limits};

    #[test]
    fn slices_keep_their_times_their_parents_and_their_tracks() {
        let lines = [Rank::new(0).steps(3), Rank::new(1).ahead(42_000).steps(3)];
        let members: Vec<Member<'_>> = lines
            .iter()
            .zip([0, 42_000])
            .zip(0..)
            .map(|((timeline, ahead_ns), rank)| Member {
                rank,
                timeline,
                ahead_ns,
            })
            .collect();
        let joined = join(&members);
        let steps = lines.iter().map(|line| line.steps.len()).sum::<usize>();
        let slices = lines.iter().map(|line| line.slices.len()).sum::<usize>();
        assert_eq!(joined.slices.len(), slices + steps);
        let name = |slice: &Slice| joined.names[slice.name as usize].text.to_string();
        let mut is_of_gpu = false;
        for (index, slice) in joined.slices.iter().enumerate() {
            let on_gpu = slice.kind == SliceKind::GpuWork;
            assert!(on_gpu || !is_of_gpu, "threads come before streams");
            is_of_gpu = on_gpu;
            if let Some(parent) = slice.parent {
                let parent = &joined.slices[parent as usize];
                let (rank, of_parent) = (slice.track, parent.track);
                assert_eq!(
                    joined.tracks[rank as usize].rank,
                    joined.tracks[of_parent as usize].rank
                );
                assert_eq!(name(parent), "train::step", "{index}");
                assert!(parent.start_ns <= slice.start_ns);
            }
        }
        // Each kernel keeps its launch, in the order of all launches.
        assert_eq!(joined.launches.len(), 6);
        assert!(joined.launches.is_sorted_by_key(|launch| launch.start_ns));
        for slice in joined
            .slices
            .iter()
            .filter(|slice| slice.kind == SliceKind::GpuWork)
        {
            let launch = &joined.launches[slice.launch.expect("its launch") as usize];
            assert_eq!(launch.parent, slice.parent);
            let work = &joined.work[slice.work.expect("what it did") as usize];
            assert_eq!(work.correlation, launch.correlation);
        }
        // Equal after the alignment.
        let starts = |rank: u64| -> Vec<i64> {
            let slices = joined.slices.iter();
            let own = slices.filter(|slice| joined.tracks[slice.track as usize].rank == Some(rank));
            own.map(|slice| slice.start_ns).collect()
        };
        assert_eq!(starts(0), starts(1));
        let processes: HashSet<u64> = joined.tracks.iter().map(|track| track.process).collect();
        assert_eq!(processes.len(), 2);
    }

    #[test]
    fn a_chrome_trace_of_ranks_is_read_with_their_steps_and_launches_apart() {
        let lines = [Rank::new(0).steps(3), Rank::new(1).steps(3)];
        let members = lines.iter().zip(0..).map(|(timeline, rank)| Member {
            rank,
            timeline,
            ahead_ns: 0,
        });
        let joined = join(&members.collect::<Vec<_>>());
        let path = std::env::temp_dir().join(format!("joined-{}.json", std::process::id()));
        joined.export_chrome_trace(&path).expect("room");
        let found = profiler_trace_validator::validate(&path).expect("a file");
        assert!(found.is_empty(), "{found:#?}");
        let Ok(Input::Timeline(read)) = Input::read(&path, Limits::DEFAULT) else {
            panic!("it is a trace")
        };
        std::fs::remove_file(&path).expect("it is there");
        let tables = [&joined, &read].map(|line| line.key_averages().to_json());
        assert_eq!(tables[0], tables[1]);
        let per_rank = |line: &Timeline| {
            let rank = |track: u32| line.tracks[track as usize].rank;
            let mut steps: Vec<_> = line
                .steps
                .iter()
                .map(|step| {
                    let slice = &line.slices[step.slice.expect("its slice") as usize];
                    (rank(slice.track), step.number)
                })
                .collect();
            let launches = line.launches.iter().map(|launch| rank(launch.track));
            let mut launches: Vec<_> = launches.collect();
            steps.sort_unstable();
            launches.sort_unstable();
            (steps, launches)
        };
        assert_eq!(per_rank(&joined), per_rank(&read));
        assert_eq!(per_rank(&read).0.len(), 6);
        let correlations = |line: &Timeline| -> Vec<u32> {
            let launches = line.launches.iter();
            launches.map(|launch| launch.correlation).collect()
        };
        assert_eq!(
            correlations(&joined),
            correlations(&read),
            "as CUPTI gave them"
        );
    }

    #[test]
    fn overlapping_steps_metadata_and_the_number_of_the_window_are_kept() {
        let lines = [0, 1].map(|rank| {
            let mut line = Rank::new(rank).steps(3);
            (line.cycle, line.step_num) = (Some(4), Some(10 + rank));
            // The steps of another thread.
            for number in 0..3 {
                let mut step = line.steps[number];
                step.number += 100;
                step.start_ns += 5;
                step.end_ns += 5;
                step.track = Some(0);
                line.steps.push(step);
            }
            for (key, value) in [
                ("run", "first"),
                ("host", if rank == 0 { "a" } else { "b" }),
            ] {
                line.metadata.push((key.to_owned(), value.to_owned()));
            }
            line
        });
        let members = lines.iter().zip(0..).map(|(timeline, rank)| Member {
            rank,
            timeline,
            ahead_ns: 0,
        });
        let joined = join(&members.collect::<Vec<_>>());
        assert_eq!((joined.cycle, joined.step_num), (Some(4), None));
        let pairs = [
            ("run", "first"),
            ("rank 0: host", "a"),
            ("rank 1: host", "b"),
        ];
        let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(joined.metadata, pairs);
        assert_eq!(joined.steps.len(), 12);
        let in_order = |step: &Step| (step.start_ns, step.number);
        assert!(joined.steps.is_sorted_by_key(in_order));
        let path = std::env::temp_dir().join(format!("overlapping-{}.json", std::process::id()));
        joined.export_chrome_trace(&path).expect("room");
        let found = profiler_trace_validator::validate(&path).expect("a file");
        assert!(found.is_empty(), "{found:#?}");
        let Ok(Input::Timeline(read)) = Input::read(&path, Limits::DEFAULT) else {
            panic!("it is a trace")
        };
        std::fs::remove_file(&path).expect("it is there");
        let shown = |line: &Timeline| -> Vec<_> {
            let steps = line.steps.iter();
            let mut shown: Vec<_> = steps
                .map(|step| {
                    let slice = &line.slices[step.slice.expect("its slice") as usize];
                    let rank = line.tracks[slice.track as usize].rank;
                    let thread = step.track.map(|track| &line.tracks[track as usize]);
                    let thread = thread.map(|thread| (thread.rank, thread.id));
                    (
                        (rank, step.number),
                        (step.start_ns, slice.duration_ns),
                        thread,
                    )
                })
                .collect();
            shown.sort_unstable();
            shown
        };
        assert_eq!(shown(&read), shown(&joined));
        let with_threads = shown(&read).into_iter();
        assert_eq!(with_threads.filter(|step| step.2.is_some()).count(), 6);
    }
}
