//! The window of a device as a strip: equal columns, and what the device did in each.

use super::{DeviceIdle, DeviceSegment, DeviceState};
use crate::in_order::InOrder as _;

/// What a device did in each part of a window, to be drawn: [`DeviceIdle::strip`].
///
/// # Examples
///
/// ```
/// # let timeline = profiler_report::Timeline::default();
/// use profiler_report::StripPart;
///
/// for device in &timeline.gpu_idle().devices {
///     for column in &device.strip(80).columns {
///         let busy = column.share(StripPart::Busy);
///         print!("{}", if busy >= 0.5 { '#' } else { '.' });
///     }
///     println!();
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdleStrip {
    /// The columns in the order of time. Each begins where the one before ends.
    pub columns: Vec<StripColumn>,
}

/// A part of a window. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StripColumn {
    /// When it begins.
    pub start_ns: i64,
    /// When it ends.
    pub end_ns: i64,
    /// How long the device did what, in the order of [`StripPart`]. The times add up to the length of the column, and none is
    /// zero.
    pub parts: Vec<(StripPart, i64)>,
}

/// What a device did, or who kept it waiting, as a strip shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum StripPart {
    /// A kernel, a copy or a fill ran.
    Busy,
    /// It waited for this function: the index in [`DeviceIdle::functions`].
    Function(u32),
    /// It waited for a function that is not among those.
    OtherFunctions,
    /// It waited for a thread that was in no measured scope.
    Outside,
    /// The next work was launched, and had not begun.
    Launched,
    /// It is not known what it did.
    NotRecorded,
    /// No work had come yet.
    BeforeFirst,
    /// There was no more work.
    AfterLast,
}

impl DeviceIdle {
    /// Returns the window as a strip of columns that are equally long to the nanosecond. There are as many as asked for, but
    /// no more than the window has nanoseconds.
    #[must_use]
    pub fn strip(&self, columns: usize) -> IdleStrip {
        let (Some(first), Some(last)) = (self.segments.first(), self.segments.last()) else {
            return IdleStrip::default();
        };
        let (begin, length) = (
            first.start_ns,
            last.end_ns.saturating_sub(first.start_ns).max(0),
        );
        let columns = i64::try_from(columns).unwrap_or(i64::MAX).min(length);
        let at = |column: i64| {
            let offset = i128::from(length) * i128::from(column) / i128::from(columns);
            begin.saturating_add(i64::try_from(offset).unwrap_or(i64::MAX))
        };
        let mut segments = &self.segments[..];
        let columns = (0..columns).map(|column| {
            let (start_ns, end_ns) = (at(column), at(column + 1));
            let mut parts = Vec::new();
            while let Some((segment, rest)) = segments.split_first() {
                let (from, to) = (segment.start_ns.max(start_ns), segment.end_ns.min(end_ns));
                if from < to {
                    add(&mut parts, segment.part(), to - from);
                }
                // The next column begins in this segment.
                if segment.end_ns > end_ns {
                    break;
                }
                segments = rest;
            }
            parts.order_by_key(|(part, _)| *part);
            StripColumn {
                start_ns,
                end_ns,
                parts,
            }
        });
        IdleStrip {
            columns: columns.collect(),
        }
    }
}

/// Adds a time to the parts of a column, which are few: the segments are many.
fn add(parts: &mut Vec<(StripPart, i64)>, part: StripPart, ns: i64) {
    match parts.iter_mut().find(|(known, _)| *known == part) {
        Some((_, sum)) => *sum += ns,
        None => parts.push((part, ns)),
    }
}

impl IdleStrip {
    /// Returns all columns as one.
    pub(crate) fn whole(&self) -> StripColumn {
        let mut parts = Vec::new();
        for (part, ns) in self.columns.iter().flat_map(|column| &column.parts) {
            add(&mut parts, *part, *ns);
        }
        parts.order_by_key(|(part, _)| *part);
        StripColumn {
            start_ns: self.columns.first().map_or(0, |first| first.start_ns),
            end_ns: self.columns.last().map_or(0, |last| last.end_ns),
            parts,
        }
    }
}

impl StripColumn {
    /// Returns which share of the column a part has, from 0 to 1.
    #[must_use]
    pub fn share(&self, part: StripPart) -> f64 {
        let parts = self.parts.iter().filter(|(other, _)| *other == part);
        let ns: i64 = parts.map(|(_, ns)| ns).sum();
        ns as f64 / (self.end_ns - self.start_ns).max(1) as f64
    }
}

impl DeviceSegment {
    /// Returns what a strip shows of it.
    #[must_use]
    pub fn part(&self) -> StripPart {
        match self.state {
            DeviceState::Busy => StripPart::Busy,
            DeviceState::NotRecorded => StripPart::NotRecorded,
            DeviceState::AfterLast => StripPart::AfterLast,
            _ if self.is_before_first => StripPart::BeforeFirst,
            DeviceState::Launched => StripPart::Launched,
            DeviceState::Host | DeviceState::LaunchCall => match (self.function, self.call) {
                (Some(function), _) => StripPart::Function(function),
                (None, Some(_)) => StripPart::OtherFunctions,
                (None, None) => StripPart::Outside,
            },
        }
    }
}
