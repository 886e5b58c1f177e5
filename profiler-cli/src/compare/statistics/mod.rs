//! Statistics of small samples, without any knowledge of what they are: each file is one textbook method.

mod false_discovery;
mod mann_whitney;
mod normal;
mod rank_sums;
mod shift;
mod spread;

pub(crate) use self::false_discovery::benjamini_hochberg;
pub(crate) use self::mann_whitney::{least_p, mann_whitney};
pub(crate) use self::normal::quantile;
pub(crate) use self::shift::{Shift, hodges_lehmann};
pub(crate) use self::spread::{mad, median};
