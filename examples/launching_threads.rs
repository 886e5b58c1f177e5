//! Attributes kernels to the function that asks for them, although another thread launches them.
//!
//! A runner thread owns the model and does what it is told through a channel; then the threads of
//! a small pool do, each with a model of its own. Each task carries a handle of the function that
//! asks, and the launching thread enters it. Where NVIDIA's library CUPTI is found, the window has
//! each kernel under the function that asked for it. Without CUPTI, and without a GPU, the program
//! says so.
//!
//! ```text
//! cargo run --release --example launching_threads
//! ```

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use profiler_examples::digits::Digits;
use profiler_examples::model::{self, Model, Outcome};
use profiler_examples::network::Network;
use profiler_examples::random::Random;
use profiler_runtime::{Handle, Profile, measured};

const BATCH: usize = 128;
const THREADS: usize = 2;

/// What a thread that owns a model is asked to do.
type Work = Box<dyn FnOnce(&mut dyn Model) + Send>;

/// A task, and the scope that asked for it.
struct Task {
    asker: Handle,
    work: Work,
}

/// Threads that launch: one of them is a runner, several are a pool.
struct Launcher {
    tasks: Sender<Task>,
    threads: Vec<JoinHandle<()>>,
}

impl Launcher {
    /// Starts the threads. Returns once each has a model.
    fn start(threads: usize) -> Outcome<Self> {
        let (tasks, to_do) = channel();
        let to_do = Arc::new(Mutex::new(to_do));
        let (ready, is_ready) = channel();
        let start = |_| {
            let (to_do, ready) = (Arc::clone(&to_do), ready.clone());
            thread::spawn(move || launch(&to_do, &ready))
        };
        let started: Vec<_> = (0..threads).map(start).collect();
        drop(ready);
        for _ in &started {
            is_ready.recv()??;
        }
        Ok(Self {
            tasks,
            threads: started,
        })
    }

    /// Has a thread do something, and waits until it has launched it.
    fn ask(&self, work: impl FnOnce(&mut dyn Model) -> Outcome + Send + 'static) -> Outcome {
        let (done, is_done) = channel();
        self.tasks.send(Task {
            // Taken where the work is asked for: inside of the function that it belongs to.
            asker: Handle::current(),
            work: Box::new(move |model| {
                let _ = done.send(work(model).map_err(|error| error.to_string()));
            }),
        })?;
        Ok(is_done.recv()??)
    }

    fn finish(self) {
        drop(self.tasks);
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

/// Does the tasks, each inside of the handle that came with it.
fn launch(to_do: &Mutex<Receiver<Task>>, ready: &Sender<Result<(), String>>) {
    let network = Network::new(64, &mut Random::seeded(17));
    let mut model = match model::create(network, BATCH) {
        Ok(model) => model,
        Err(error) => {
            let _ = ready.send(Err(error.to_string()));
            return;
        }
    };
    let _ = ready.send(Ok(()));
    loop {
        let task = to_do.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(task) = task else { return };
        let _asker = task.asker.enter();
        (task.work)(&mut *model);
    }
}

#[measured(name = "infer")]
fn infer(launcher: &Launcher, batch: Digits) -> Outcome {
    launcher.ask(|model| {
        model.load(batch)?;
        model.forward()
    })
}

#[measured(name = "test")]
fn test(launcher: &Launcher, batch: Digits) -> Outcome {
    launcher.ask(|model| {
        model.load(batch)?;
        model.forward()?;
        model.correct().map(drop)
    })
}

fn main() -> Outcome {
    let _profiler = profiler_runtime::init()?;
    let digits = Digits::all().standardised();
    let batch = || digits.select(&(0..BATCH).collect::<Vec<_>>());
    for threads in [1, THREADS] {
        let launcher = Launcher::start(threads)?;
        // The first launches of a program load its kernels.
        test(&launcher, batch())?;
        let (done, trace) = Profile::builder().run(|_| {
            (0..4).try_for_each(|_| infer(&launcher, batch()))?;
            test(&launcher, batch())
        });
        done?;
        launcher.finish();
        println!("launched by {threads} threads:");
        print!("{}", trace?.key_averages().kernels());
    }
    Ok(())
}
