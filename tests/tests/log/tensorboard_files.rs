//! Loggers in one folder write files of their own, and leave files of others alone.

use profiler_tests::event_files;
use std::error::Error;
use std::fs;

use profiler_runtime::log::LogError;
use profiler_runtime::TensorBoardLogger;

#[test]
fn loggers_made_at_once_in_one_folder_lose_nothing() -> Result<(), Box<dyn Error>> {
    const LOGGERS: u32 = 16;
    let dir = tempfile::tempdir()?;
    std::thread::scope(|scope| {
        for number in 0..LOGGERS {
            let dir = dir.path();
            scope.spawn(move || -> Result<(), LogError> {
                let logger = TensorBoardLogger::new(dir)?;
                (0..100).try_for_each(|step| logger.add_scalar("of", f64::from(number), step))
            });
        }
    });

    let paths = event_files::paths(dir.path());
    assert_eq!(paths.len(), LOGGERS as usize);
    let mut writers = Vec::new();
    for path in &paths {
        let scalars = event_files::read(path).scalars;
        assert!(
            scalars.iter().map(|scalar| scalar.step).eq(0..100),
            "{}",
            path.display()
        );
        let mut values = scalars.iter().map(|scalar| scalar.value.to_bits());
        let first = values.next().expect("a hundred values");
        assert!(
            values.all(|value| value == first),
            "one writer for each file"
        );
        writers.push(f64::from(f32::from_bits(first)));
    }
    writers.sort_by(f64::total_cmp);
    assert!(writers.into_iter().eq((0..LOGGERS).map(f64::from)));
    Ok(())
}

#[test]
fn a_file_that_has_the_name_already_is_left_alone() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let first = TensorBoardLogger::new(dir.path())?.path();
    let name = first
        .file_name()
        .expect("a file")
        .to_string_lossy()
        .into_owned();
    let (stem, number) = name.rsplit_once('.').expect("a number at the end");
    let number: u64 = number.parse()?;
    // Other tests of this process take numbers and seconds too: occupy what may come next.
    let parts: Vec<&str> = stem.split('.').collect();
    let seconds: u64 = parts[3].parse()?;
    let mut occupied = Vec::new();
    for second in seconds..seconds + 3 {
        for next in number + 1..number + 200 {
            let head = format!("events.out.tfevents.{second:010}.{}", parts[4..].join("."));
            let path = dir.path().join(format!("{head}.{next}"));
            fs::write(&path, "of another program")?;
            occupied.push(path);
        }
    }

    let logger = TensorBoardLogger::new(dir.path())?;
    logger.add_scalar("mine", 1.0, 0)?;
    logger.flush()?;

    assert!(!occupied.contains(&logger.path()));
    assert_eq!(event_files::read(&logger.path()).scalars.len(), 1);
    for path in &occupied {
        assert_eq!(fs::read_to_string(path)?, "of another program");
    }
    Ok(())
}

#[test]
fn a_log_that_is_deleted_goes_on_in_a_new_file() -> Result<(), Box<dyn Error>> {
    let parent = tempfile::tempdir()?;
    let dir = parent.path().join("run");
    let logger = TensorBoardLogger::new(&dir)?;
    let first = logger.path();
    logger.add_scalar("step", 1.0, 0)?;
    logger.flush()?;
    fs::remove_dir_all(&dir)?;
    logger.add_scalar("step", 1.0, 1)?;
    logger.flush()?;
    logger.add_scalar("step", 1.0, 2)?;
    drop(logger);

    assert!(!first.exists());
    let steps: Vec<_> = event_files::only_file(&dir)
        .scalars
        .iter()
        .map(|scalar| scalar.step)
        .collect();
    assert_eq!(steps, [1, 2]);
    Ok(())
}
