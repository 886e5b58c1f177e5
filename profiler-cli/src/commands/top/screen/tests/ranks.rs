//! The screen of several ranks.

use super::*;

/// Four ranks, of which the last has ended and the third takes longer for its steps.
pub(super) fn ranks() -> Job {
    let mut job = Job::of_file(PathBuf::from("run/rank0.json"), Limits::DEFAULT, None);
    for (rank, steps) in [(2, 8), (1, 10), (3, 10)] {
        let path = PathBuf::from(format!("run/rank{rank}.json"));
        let mut other = Job::of_file(path, Limits::DEFAULT, None);
        job.ranks.append(&mut other.ranks);
        let last = job.ranks.len() - 1;
        job.ranks[last].feed = rank_feed(rank, steps, rank == 3);
    }
    job.ranks[0].feed = rank_feed(0, 10, false);
    job.folder = Some(PathBuf::from("run"));
    job
}

fn rank_feed(rank: u64, steps: u64, is_last: bool) -> Feed {
    let at = |second: u64| {
        let mut summary = summary(second as f64 * 1e9, second);
        summary.environment.rank = Some(rank);
        summary.rows[0].name = "train::train_step".to_owned();
        summary.rows[0].calls = steps * second + second % 2;
        summary.is_last = is_last && second == 12;
        summary
    };
    fed_with((1..=12).map(at))
}

#[test]
fn a_rank_is_a_line_and_the_slow_one_is_marked() {
    for columns in [200, 120, 80, 40] {
        let mut view = View::new(Order::Limit, String::new()).of_ranks(None);
        let screen = drawn(&ranks(), &mut view, (columns, 10), 400);
        check(&format!("ranks-{columns}"), &screen);
    }
    let mut view = View::new(Order::Limit, String::new()).of_ranks(None);
    drawn(&ranks(), &mut view, (80, 10), 400);
    press(&mut view, KeyCode::Down);
    drawn(&ranks(), &mut view, (80, 10), 400);
    press(&mut view, KeyCode::Enter);
    let screen = drawn(&ranks(), &mut view, (80, 10), 400);
    assert!(screen[0].starts_with("run/rank1.json"), "{screen:#?}");
    press(&mut view, KeyCode::Char('?'));
    let screen = drawn(&ranks(), &mut view.of_ranks(None), (80, 24), 400);
    check("help-ranks-80", &screen);
}

#[test]
fn each_source_of_a_number_is_named() {
    let mut job = ranks();
    let head = |job: &Job| {
        let mut view = View::new(Order::Limit, String::new()).of_ranks(None);
        drawn(job, &mut view, (120, 10), 400)[1].clone()
    };
    let ranges = "busy: GPU times that the device limits";
    assert!(head(&job).ends_with(ranges), "{}", head(&job));
    let mut gpu = SampledGpu::default();
    gpu.utilization_last_percent = Some(40.0);
    let mut with_sensor = summary(24e9, 2);
    with_sensor.gpus = vec![gpu];
    job.ranks[1].feed = fed_with([with_sensor]);
    assert!(
        head(&job).ends_with("busy: the sensor's load, or GPU times that the device limits"),
        "{}",
        head(&job)
    );
}
