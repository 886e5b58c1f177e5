//! A stream, in every form and from wherever it comes. Without a device no stream exists; then
//! most of this only compiles.
#![deny(warnings)]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, DriverError};
use profiler_runtime::cuda::Stream;
use profiler_runtime::{measure_execution_time, measure_execution_time_context, scope};

struct Trainer {
    stream: Arc<CudaStream>,
    context: Arc<CudaContext>,
    known: Stream,
    epoch: u32,
}

impl Trainer {
    fn stream(&self) -> &CudaStream {
        &self.stream
    }

    fn shared(&self) -> Arc<CudaStream> {
        Arc::clone(&self.stream)
    }

    #[measure_execution_time(stream = self.stream())]
    fn by_reference(&self) -> &u32 {
        &self.epoch
    }

    #[measure_execution_time(stream = &*self.stream)]
    fn behind_the_arc(&self) -> u32 {
        self.epoch
    }

    #[measure_execution_time(stream = &self.stream)]
    fn by_arc_reference(&self) -> &CudaStream {
        &self.stream
    }

    #[measure_execution_time(stream = self.shared())]
    fn by_arc(&self) -> u32 {
        self.epoch
    }

    #[measure_execution_time(stream = &self.shared())]
    fn by_a_reference_to_what_is_gone(&self) -> u32 {
        self.epoch
    }

    #[measure_execution_time(stream = &self.stream, global_step = self.epoch)]
    fn beside_mutable_self(&mut self, stream: Arc<CudaStream>) -> &mut u32 {
        self.epoch += 1;
        self.stream = stream;
        &mut self.epoch
    }

    #[measure_execution_time(stream = self.stream.clone(), sync)]
    fn cloned_beside_mutable_self(&mut self) {
        self.epoch += 1;
    }

    #[measure_execution_time(stream = &self.stream, cuda_graph)]
    fn consumed(self) -> Arc<CudaStream> {
        self.stream
    }

    #[measure_execution_time(stream = &self.known)]
    fn by_known(&mut self) {
        self.epoch += 1;
    }

    #[measure_execution_time(stream = &self.context)]
    fn by_context(&mut self) {
        self.epoch += 1;
    }

    #[measure_execution_time(stream = &self.stream)]
    async fn later(&mut self) -> u32 {
        self.epoch += 1;
        std::future::ready(self.epoch).await
    }

    #[measure_execution_time(stream = self.shared())]
    async fn later_by_arc(&self) -> &u32 {
        std::future::ready(()).await;
        &self.epoch
    }

    #[measure_execution_time(stream = &self.stream)]
    fn boxed(&self) -> Pin<Box<dyn Future<Output = u32> + Send + '_>> {
        Box::pin(async { self.epoch })
    }
}

#[measure_execution_time(stream = stream)]
fn by_argument(stream: &CudaStream) -> &Arc<CudaContext> {
    stream.context()
}

#[measure_execution_time(stream = &stream)]
fn by_argument_that_moves(stream: Arc<CudaStream>) -> Arc<CudaStream> {
    stream
}

#[measure_execution_time(stream = context, bypass = true)]
fn by_context_argument(context: &CudaContext) -> usize {
    context.ordinal()
}

struct Inheriting {
    stream: Arc<CudaStream>,
}

#[measure_execution_time(stream = &self.stream, sync)]
impl Inheriting {
    fn synchronous(&mut self, stream: Arc<CudaStream>) {
        self.stream = stream;
    }

    #[measure_execution_time(cuda_graph)]
    fn captured(&self) -> Arc<CudaStream> {
        self.stream.clone()
    }

    #[measure_execution_time(sync = false)]
    async fn later(&self) {
        measure_execution_time_context!("launch", stream = &self.stream, sync, {});
        std::future::ready(()).await;
    }

    #[measure_execution_time(stream = &Arc::clone(stream))]
    fn without_self(stream: &Arc<CudaStream>) -> &CudaStream {
        stream
    }
}

fn sections(trainer: &mut Trainer, layer: u32) {
    {
        let _borrowed = scope!("borrowed", stream = trainer.stream());
        let _named = scope!(
            format!("layer {layer}"),
            stream = &*trainer.stream,
            cuda_graph
        );
    }
    let _scope = scope!("shared", stream = &trainer.stream, log = |_, _, _| {}, sync);
    let _current = scope!("current", sync = true);
    measure_execution_time_context!("block", stream = trainer.shared(), cuda_graph = false, {
        trainer.epoch += 1;
    });
    measure_execution_time_context!("context", stream = &trainer.context, log_every = 2, {
        trainer.epoch += 1
    });
}

#[measure_execution_time(sync)]
fn without_a_stream() -> u8 {
    1
}

#[measure_execution_time(cuda_graph)]
fn captured_without_a_stream() -> u8 {
    2
}

fn main() -> Result<(), DriverError> {
    assert_eq!(without_a_stream() + captured_without_a_stream(), 3);
    if !profiler_runtime::cuda::status().is_ready() {
        return Ok(());
    }
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    let other = context.new_stream()?;
    let mut trainer = Trainer {
        known: Stream::from(stream.clone()),
        stream: stream.clone(),
        context: context.clone(),
        epoch: 1,
    };
    assert_eq!(*trainer.by_reference(), 1);
    assert_eq!(trainer.behind_the_arc() + trainer.by_arc(), 2);
    assert_eq!(trainer.by_a_reference_to_what_is_gone(), 1);
    assert_eq!(trainer.by_arc_reference().cu_stream(), stream.cu_stream());
    *trainer.beside_mutable_self(other) += 1;
    trainer.cloned_beside_mutable_self();
    trainer.by_known();
    trainer.by_context();
    drop(trainer.later());
    drop(trainer.later_by_arc());
    drop(trainer.boxed());
    sections(&mut trainer, 1);
    assert_eq!(trainer.epoch, 8);
    drop(trainer.consumed());

    assert_eq!(
        by_argument(&stream).ordinal(),
        by_context_argument(&context)
    );
    let mut inheriting = Inheriting {
        stream: by_argument_that_moves(stream.clone()),
    };
    inheriting.synchronous(inheriting.captured());
    drop(inheriting.later());
    assert_eq!(
        Inheriting::without_self(&stream).cu_stream(),
        stream.cu_stream()
    );
    Ok(())
}
