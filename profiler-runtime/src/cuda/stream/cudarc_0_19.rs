//! Streams and contexts of cudarc 0.19 as the argument of a call.

use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream};
use profiler_cuda_sys::driver::RawContext;
use profiler_report::internal::RawStream;

use super::{IntoStream, KeepAlive, Stream, StreamHandles, StreamRef};

fn handles_of(stream: &CudaStream) -> StreamHandles {
    StreamHandles {
        stream: RawStream(stream.cu_stream().cast()).canonical(),
        context: RawContext(stream.context().cu_ctx().cast()),
    }
}

fn default_stream_of(context: &CudaContext) -> StreamHandles {
    StreamHandles {
        stream: RawStream::LEGACY,
        context: RawContext(context.cu_ctx().cast()),
    }
}

fn borrowed<'s>(handles: StreamHandles) -> StreamRef<'s> {
    StreamRef {
        stream: Stream::unowned(handles),
        borrow: PhantomData,
    }
}

impl From<Arc<CudaStream>> for Stream {
    fn from(stream: Arc<CudaStream>) -> Self {
        Self {
            handles: handles_of(&stream),
            keep_alive: KeepAlive::Stream(stream),
        }
    }
}

impl From<Arc<CudaContext>> for Stream {
    fn from(context: Arc<CudaContext>) -> Self {
        Self {
            handles: default_stream_of(&context),
            keep_alive: KeepAlive::Context(context),
        }
    }
}

impl<'s> IntoStream<'s> for Arc<CudaStream> {
    fn into_stream(self) -> StreamRef<'s> {
        StreamRef::owned(self.into())
    }
}

impl<'s> IntoStream<'s> for &Arc<CudaStream> {
    fn into_stream(self) -> StreamRef<'s> {
        Arc::clone(self).into_stream()
    }
}

impl<'s> IntoStream<'s> for &'s CudaStream {
    fn into_stream(self) -> StreamRef<'s> {
        borrowed(handles_of(self))
    }
}

impl<'s> IntoStream<'s> for Arc<CudaContext> {
    fn into_stream(self) -> StreamRef<'s> {
        StreamRef::owned(self.into())
    }
}

impl<'s> IntoStream<'s> for &Arc<CudaContext> {
    fn into_stream(self) -> StreamRef<'s> {
        Arc::clone(self).into_stream()
    }
}

impl<'s> IntoStream<'s> for &'s CudaContext {
    fn into_stream(self) -> StreamRef<'s> {
        borrowed(default_stream_of(self))
    }
}
