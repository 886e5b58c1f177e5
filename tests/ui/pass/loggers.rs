//! A logger in a variable, a field, an element or a `static` stays there: `log = self.board` moves nothing.
#![deny(warnings)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, mpsc};

use profiler_runtime::log::LogError;
use profiler_runtime::{ScalarLogger, TensorBoardLogger, measure, measured};

#[derive(Default)]
struct Board(AtomicU64);

impl ScalarLogger for Board {
    fn add_scalar(&self, _tag: &str, _value: f64, step: u64) -> Result<(), LogError> {
        self.0.store(step, Ordering::Relaxed);
        Ok(())
    }
}

static SHARED: Board = Board(AtomicU64::new(0));
// Made when the first call is logged.
static BOARD: LazyLock<Arc<Board>> = LazyLock::new(Arc::default);
static OBJECT: LazyLock<Arc<dyn ScalarLogger>> = LazyLock::new(|| Arc::new(Board::default()));
static LAZY_FUNCTION: LazyLock<fn(&str, f64, u64)> = LazyLock::new(|| |_, _, _| ());
static UNUSED: LazyLock<Arc<TensorBoardLogger>> = LazyLock::new(|| panic!("no call is logged"));
const FUNCTION: fn(&str, f64, u64) = print;

fn print(tag: &str, milliseconds: f64, step: u64) {
    println!("{tag} {step}: {milliseconds} ms");
}

struct Trainer {
    board: Arc<Board>,
    object: Arc<dyn ScalarLogger>,
    boards: Vec<Arc<Board>>,
    kept: &'static Board,
    function: fn(&str, f64, u64),
    epoch: u32,
}

impl Trainer {
    #[measured(log = self.board, global_step = self.epoch)]
    fn train(&mut self) -> &mut u32 {
        self.board = Arc::default();
        &mut self.epoch
    }

    #[measured(log = &self.board)]
    fn by_reference(&mut self) {
        self.epoch += 1;
    }

    #[measured(log = self.object)]
    fn object(&self) {}

    #[measured(log = &self.object)]
    fn object_by_reference(&self) {}

    #[measured(log = self.boards[0])]
    fn element(&self) {}

    #[measured(log = (self.kept))]
    fn kept(&self) {}

    #[measured(log = &self.kept)]
    fn kept_by_reference(&self) {}

    #[measured(log = { let epoch = self.epoch; move |_: &str, _: f64, step: u64| println!("{epoch}: {step}") })]
    fn owned_by_a_closure(&self) {}

    #[measured(log = self.function)]
    fn function(&self) {}

    #[measured(log = self.board)]
    fn consumed(self) -> Self {
        self
    }

    #[measured(log = &self.board)]
    fn taken_apart(self) -> Arc<Board> {
        self.board
    }

    #[measured(log = self.board)]
    async fn later(&mut self) -> u32 {
        self.epoch += 1;
        self.epoch
    }

    #[measured(log = self.board)]
    async fn consumed_later(self) -> Self {
        self
    }

    #[measured(log = Arc::clone(&self.board))]
    fn moved(self) -> u32 {
        self.epoch
    }

    fn sections(&mut self) {
        for step in 0..2_u32 {
            measure!("field", log = self.board, global_step = step, {
                self.epoch += 1;
            });
            let _guard = measure!("reference", log = &self.board, log_every = 2);
            self.epoch += 1;
        }
        let repeated = || measure!("in a closure", log = self.board, { self.epoch });
        assert_eq!(repeated(), repeated());
    }
}

struct Kept {
    board: Board,
}

static KEPT: Kept = Kept {
    board: Board(AtomicU64::new(0)),
};

impl Kept {
    fn board(&'static self) -> &'static Board {
        &self.board
    }

    #[measured(log = self.board())]
    fn train(&'static self) {}
}

struct Inheriting {
    board: Arc<Board>,
}

#[measured(log = self.board)]
impl Inheriting {
    fn inherited(&self) -> u64 {
        self.board.0.load(Ordering::Relaxed)
    }

    #[measured(log = board)]
    fn with_its_own(board: &Arc<Board>) -> u64 {
        board.0.load(Ordering::Relaxed)
    }

    async fn later(self) -> Arc<Board> {
        self.board
    }
}

#[measured(log = board)]
fn used_by_the_body(board: Arc<Board>) -> Arc<Board> {
    board
}

#[measured(log = &board)]
fn borrowed_from_a_parameter(board: Arc<Board>) -> Arc<Board> {
    board
}

#[measured(log = board)]
async fn used_by_the_future(board: Arc<Board>) -> Arc<Board> {
    board
}

#[measured(log = board)]
#[allow(unused_variables, reason = "a stripped function does not use it")]
async fn not_used_by_the_future(board: Arc<Board>) {}

#[measured(log = *board)]
fn behind_a_reference(board: &Arc<Board>) -> usize {
    Arc::strong_count(board)
}

#[measured(log = board)]
fn of_a_generic_type<L: ScalarLogger + 'static>(board: &Arc<L>) -> usize {
    Arc::strong_count(board)
}

#[measured(log = &Arc::clone(board))]
fn of_what_is_gone(board: &Arc<Board>) -> usize {
    Arc::strong_count(board)
}

#[measured(log = board)]
fn of_a_closure_in_an_arc<F>(board: &Arc<F>) -> usize
where
    F: Fn(&str, f64, u64) + Send + Sync + 'static,
{
    Arc::strong_count(board)
}

#[measured(log = &SHARED)]
fn of_a_static() {}

#[measured(log = logger)]
fn of_a_static_argument(logger: &'static Board) -> u64 {
    logger.0.load(Ordering::Relaxed)
}

#[measured(log = move |_, milliseconds, _| assert!(milliseconds >= 0.0 || limit > 9), global_step = limit + 1)]
fn of_a_closure_with_an_argument(limit: u8) -> u8 {
    limit
}

#[measured(log = &*BOARD)]
fn of_a_lazy_static() {}

#[measured(log = Arc::clone(&BOARD))]
fn of_a_clone_by_path() {}

#[measured(log = crate::BOARD)]
fn of_a_path() {}

#[measured(log = OBJECT)]
async fn of_an_object() {}

#[measured(log = LAZY_FUNCTION)]
fn of_a_lazy_function() {}

#[measured(log = UNUSED, bypass = true)]
fn of_a_logger_that_is_never_made() {}

struct Global;

#[measured(log = BOARD, log_every = 2)]
impl Global {
    fn train(&mut self) {}
}

#[measured(log = profiler_runtime::TracingLogger)]
fn of_this_crate() {}

#[measured(log = FUNCTION)]
fn of_a_constant() {}

#[measured(log = print)]
fn of_a_function() {}

fn sections(board: Arc<Board>) -> Arc<Board> {
    let (sender, receiver) = mpsc::channel();
    let sink = move |_: &str, _: f64, step: u64| sender.send(step);
    for _ in 0..2 {
        measure!("variable", log = board, {});
        measure!("closure in a variable", log = sink, {});
        measure!("clone", log = board.clone(), {});
        measure!(
            "block",
            log = {
                let board = &board;
                Arc::clone(board)
            },
            {}
        );
        let _guard = measure!(format!("at run {}", "time"), log = board);
    }
    measure!("moved at last", log = Arc::new(sink), {});
    drop(receiver);
    board
}

fn main() {
    let board = Arc::<Board>::default();
    let mut trainer = Trainer {
        board: board.clone(),
        object: board.clone(),
        boards: vec![board.clone()],
        kept: &SHARED,
        function: FUNCTION,
        epoch: 0,
    };
    *trainer.train() += 1;
    trainer.by_reference();
    trainer.object();
    trainer.object_by_reference();
    trainer.element();
    trainer.kept();
    trainer.kept_by_reference();
    trainer.owned_by_a_closure();
    trainer.function();
    KEPT.train();
    drop(trainer.later());
    trainer.sections();
    assert_eq!(trainer.epoch, 6);
    let trainer = trainer.consumed();
    let again = Trainer {
        boards: Vec::new(),
        board: board.clone(),
        object: board.clone(),
        ..trainer
    };
    assert_eq!(again.moved(), 6);
    let again = Trainer {
        boards: Vec::new(),
        board: board.clone(),
        object: board.clone(),
        kept: &SHARED,
        function: FUNCTION,
        epoch: 0,
    };
    drop(again.consumed_later());
    drop(trainer_of(&board).taken_apart());

    let inheriting = Inheriting {
        board: board.clone(),
    };
    assert_eq!(
        inheriting.inherited(),
        Inheriting::with_its_own(&inheriting.board)
    );
    drop(inheriting.later());

    let board = borrowed_from_a_parameter(used_by_the_body(board));
    drop(used_by_the_future(board.clone()));
    drop(not_used_by_the_future(board.clone()));
    assert!(behind_a_reference(&board) > 0);
    assert!(of_a_generic_type(&board) > 0);
    assert!(of_what_is_gone(&board) > 0);
    assert!(of_a_closure_in_an_arc(&Arc::new(print)) > 0);
    of_a_static();
    of_a_static_argument(&SHARED);
    assert_eq!(of_a_closure_with_an_argument(1), 1);
    of_a_lazy_static();
    of_a_clone_by_path();
    of_a_path();
    drop(of_an_object());
    of_a_lazy_function();
    of_a_logger_that_is_never_made();
    Global.train();
    measure!("static", log = BOARD, {});
    of_this_crate();
    of_a_constant();
    of_a_function();
    drop(sections(board));
}

fn trainer_of(board: &Arc<Board>) -> Trainer {
    Trainer {
        board: board.clone(),
        object: board.clone(),
        boards: Vec::new(),
        kept: &SHARED,
        function: FUNCTION,
        epoch: 0,
    }
}
