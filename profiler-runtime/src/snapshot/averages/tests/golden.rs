//! How the tables look, to the character.

use profiler_report::{GroupBy, SortKey, TableOptions};
use regex_lite::Regex;

use super::{InMs, memory, stream};
use crate::golden::assert_golden;
use crate::session::sample::Sample;
use crate::session::{ScopeDetails, SessionOptions, Trace};

fn shapes(shapes: &[&[usize]]) -> ScopeDetails {
    ScopeDetails {
        shapes: Some(shapes.iter().map(|shape| (*shape).into()).collect()),
        ..memory(3 << 20, 4 << 20, Some(-1024))
    }
}

/// A step of training: a recursive scope, GPU times on two streams, one scope without any.
fn training(options: SessionOptions) -> Trace {
    let mut sample = Sample::new();
    sample.options = options;
    let train = sample.ms("train", 0, 0.0, 100.0);
    let forward = sample.ms("model::forward", train, 10.0, 30.0);
    sample.gpu(stream(0), 0, 60e6, 20e6);
    sample.extra(shapes(&[&[32, 128], &[128]]));
    let attend = sample.ms("model::attend", forward, 15.0, 20.0);
    sample.gpu(stream(0), 0, 40e6, 40e6);
    sample.ms("model::attend", attend, 20.0, 10.0);
    sample.gpu(stream(1), 0, 0.005e6, 0.005e6);
    sample.ms("model::forward", train, 50.0, 20.0);
    sample.gpu(stream(0), 0, 15e6, 15e6);
    sample.extra(shapes(&[&[8, 128], &[128]]));
    sample.trace()
}

/// All columns have room.
const WIDTH: usize = 250;

/// The tables of one thing after the other.
fn drawn(tables: &[String]) -> String {
    tables.join("\n")
}

#[test]
fn the_table_has_torchs_columns() {
    let averages = training(SessionOptions::DEFAULT).key_averages();
    let tables = [averages.table(TableOptions::new().width(WIDTH))];
    assert_golden(
        "snapshot/averages/tests/golden/averages.txt",
        &drawn(&tables),
    );
}

#[test]
fn statistics_add_what_torch_lacks() {
    let mut options = SessionOptions::DEFAULT;
    let table = TableOptions::new().statistics(true).width(400);
    let times = training(options).key_averages().table(&table);
    options.profile_memory = true;
    options.cpu = false;
    let memory = training(options).key_averages().table(&table);
    assert_golden(
        "snapshot/averages/tests/golden/statistics.txt",
        &drawn(&[times, memory]),
    );
}

#[test]
fn rows_are_told_apart_by_shapes_or_stacks() {
    let mut options = SessionOptions {
        record_shapes: true,
        profile_memory: true,
        ..SessionOptions::DEFAULT
    };
    let table = TableOptions::new()
        .sort_by(SortKey::SelfCudaTimeTotal)
        .width(WIDTH);
    let by = GroupBy::new().group_by_input_shape(true);
    let shapes = training(options)
        .key_averages_by(by)
        .table(table.clone().row_limit(3));
    options.profile_memory = false;
    let by = GroupBy::new().group_by_stack(2);
    let stacks = training(options).key_averages_by(by).table(&table);
    // Where this file stands, and what in it, is no part of the layout.
    let places = Regex::new(r"\S+golden\.rs\(\d+\)|─{3,}").expect("a pattern");
    let stacks = places.replace_all(&stacks, "…").into_owned();
    assert_golden(
        "snapshot/averages/tests/golden/groups.txt",
        &drawn(&[shapes, stacks]),
    );
}

#[test]
fn callers_and_callees_stand_beside_their_functions() {
    let averages = training(SessionOptions::DEFAULT).key_averages();
    let tables = [
        averages.callers().table(TableOptions::new().width(WIDTH)),
        averages.callees().table(TableOptions::new().width(WIDTH)),
    ];
    assert_golden(
        "snapshot/averages/tests/golden/callers.txt",
        &drawn(&tables),
    );
}
