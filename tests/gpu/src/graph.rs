//! Graphs, captured from a stream.

use crate::driver::{Driver, made};
use crate::trouble::Trouble;

/// `CU_STREAM_CAPTURE_MODE_GLOBAL`: a potentially unsafe call on any thread invalidates the
/// capture.
pub(crate) const GLOBAL: u32 = 0;
/// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`: only such calls of this thread invalidate the capture.
pub(crate) const THREAD_LOCAL: u32 = 1;

/// An executable graph, and the graph it was created from.
pub(crate) struct Graph {
    driver: &'static Driver,
    captured: usize,
    exec: usize,
}

impl Graph {
    /// Captures the work that `work` launches on the stream.
    pub(crate) fn capture(
        driver: &'static Driver,
        stream: usize,
        mode: u32,
        work: impl FnOnce() -> Result<(), Trouble>,
    ) -> Result<Self, Trouble> {
        let begun = driver.cuStreamBeginCapture_v2(stream, mode);
        driver.check("cuStreamBeginCapture", begun)?;
        let done = work();
        let graph: usize = made(driver, "cuStreamEndCapture", |graph| {
            driver.cuStreamEndCapture(stream, graph)
        })?;
        let mut made_of = Self {
            driver,
            captured: graph,
            exec: 0,
        };
        done?;
        made_of.exec = made(driver, "cuGraphInstantiate", |exec| {
            let nowhere = std::ptr::null_mut();
            driver.cuGraphInstantiate_v2(exec, graph, nowhere, nowhere.cast(), 0)
        })?;
        Ok(made_of)
    }

    pub(crate) fn launch(&self, stream: usize) -> Result<(), Trouble> {
        self.driver.check(
            "cuGraphLaunch",
            self.driver.cuGraphLaunch(self.exec, stream),
        )
    }

    pub(crate) fn handle(&self) -> usize {
        self.exec
    }

    pub(crate) fn nodes(&self) -> Result<usize, Trouble> {
        made(self.driver, "cuGraphGetNodes", |count| {
            self.driver
                .cuGraphGetNodes(self.captured, std::ptr::null_mut(), count)
        })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // Neither is in use. If destroying fails, they are freed when the process exits.
        let _ = self.driver.cuGraphExecDestroy(self.exec);
        let _ = self.driver.cuGraphDestroy(self.captured);
    }
}
