//! The table that the fields of a cell are declared in.

/// Declares [`StatCell`](super::StatCell): its fields, once, and for each how a summary reads it.
///
/// From the table come the struct, `new`, the part of `read_into` that has one rule for each field, and the reset of
/// `drain_into`. So a new field cannot be left out of any of these. The rules:
///
/// | rule | effect on the totals |
/// |---|---|
/// | `count(field)`, `ticks(field)` | adds to the field |
/// | `state` | none: the thread's own state, which a drained cell does not have |
/// | `on_drain(field)` | adds to the field when the cell is drained |
/// | `identity` | none, and the field outlives a drain |
macro_rules! stat_cell {
    (
        $(#[$cell_attribute:meta])*
        pub(crate) struct $cell:ident {
            first {$(
                $(#[$hot_attribute:meta])*
                $hot:ident: $hot_rule:ident $(($hot_total:ident))?,
            )*}
            times: $times:ty,
            others {$(
                $(#[$attribute:meta])*
                $visibility:vis $field:ident: $rule:ident $(($total:ident))?,
            )*}
        }
    ) => {
        $(#[$cell_attribute])*
        pub(crate) struct $cell {
            $(
                $(#[$hot_attribute])*
                $hot: SingleWriterU64,
            )*
            times: $times,
            $(
                $(#[$attribute])*
                $visibility $field: SingleWriterU64,
            )*
            /// The cell that was allocated before this one: see the pool.
            pub(super) previous: AtomicPtr<$cell>,
        }

        impl $cell {
            pub(crate) const fn new() -> Self {
                Self {
                    $($hot: SingleWriterU64::new(),)*
                    times: <$times>::new(),
                    $($field: SingleWriterU64::new(),)*
                    previous: AtomicPtr::new(ptr::null_mut()),
                }
            }

            /// Adds the fields to `totals` by their rules.
            fn read_fields(&self, totals: &mut Totals) {
                $(stat_cell!(@read $hot_rule $(($hot_total))?, self.$hot, totals);)*
                $(stat_cell!(@read $rule $(($total))?, self.$field, totals);)*
            }

            /// Adds to `totals` what only a drain reads, and resets the fields.
            fn drain_fields(&self, totals: &mut Totals) {
                $(stat_cell!(@drain $hot_rule $(($hot_total))?, self.$hot, totals);)*
                $(stat_cell!(@drain $rule $(($total))?, self.$field, totals);)*
            }

            /// All fields except those with the rule `identity`.
            #[cfg(test)]
            fn drained_fields(&self) -> Vec<&SingleWriterU64> {
                let fields = [
                    $(stat_cell!(@list $hot_rule, self.$hot),)*
                    $(stat_cell!(@list $rule, self.$field),)*
                ];
                fields.into_iter().flatten().collect()
            }
        }
    };

    (@read count($total:ident), $field:expr, $totals:ident) => { $totals.$total += $field.get() };
    (@read ticks($total:ident), $field:expr, $totals:ident) => { $totals.$total += $field.ticks() };
    (@read state, $field:expr, $totals:ident) => {};
    (@read on_drain($total:ident), $field:expr, $totals:ident) => {};
    (@read identity, $field:expr, $totals:ident) => {};

    (@drain identity, $field:expr, $totals:ident) => {};
    (@drain on_drain($total:ident), $field:expr, $totals:ident) => {
        $totals.$total += $field.get();
        $field.set(0);
    };
    (@drain $rule:ident $(($total:ident))?, $field:expr, $totals:ident) => { $field.set(0) };

    (@list identity, $field:expr) => { None };
    (@list $rule:ident, $field:expr) => { Some(&$field) };
}
pub(super) use stat_cell;
