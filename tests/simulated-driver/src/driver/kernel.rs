//! Modules and kernels. The duration of a kernel comes from its name, its parameters or its PTX.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::code::{CudaResult, INVALID_HANDLE, INVALID_PTX, INVALID_VALUE, NOT_FOUND};
use super::ffi::Parameters;
use super::script::nanoseconds;
use super::slab::Missing;
use super::state::DriverState;
use super::task::{Detail, Effect, Task, TaskDuration};
use crate::report::ActivityKind;

/// The PTX comment that sets the duration of a kernel: `// simulated: NAME = 20us` or `//
/// simulated: NAME = parameter 1 us`.
const DURATION_COMMENT: &str = "// simulated:";

/// The PTX comment that sets the parameter with the address to which a kernel writes when it began and ended: `// simulated
/// stamps: NAME = parameter 1`. It writes nothing where the address is 0.
const STAMPS_COMMENT: &str = "// simulated stamps:";

/// The duration of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KernelDuration {
    /// The default duration in the settings.
    Default,
    Ns(u64),
    /// The value of a parameter of 4 or 8 bytes, in units of `unit` nanoseconds.
    Parameter {
        index: usize,
        bytes: usize,
        unit: u64,
    },
}

/// A loaded module.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) context: usize,
    /// The kernels that the PTX declares; `None` for a binary, which is not read.
    kernels: Option<BTreeMap<String, KernelDuration>>,
    /// The parameters with addresses for stamps, by kernel.
    stamps: BTreeMap<String, usize>,
    /// The kernels that were looked up.
    functions: BTreeMap<String, usize>,
}

/// A kernel of a loaded module.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) context: usize,
    name: Arc<str>,
    length: KernelDuration,
    stamps: Option<usize>,
}

/// Returns the kernels that a PTX text declares.
pub(crate) fn parse(ptx: &str) -> CudaResult<BTreeMap<String, KernelDuration>> {
    let code = without_comments(ptx);
    if !code.contains(".version") || !code.contains(".target") {
        return Err(INVALID_PTX);
    }
    let mut kernels = BTreeMap::new();
    for entry in code.split(".entry").skip(1) {
        let head = entry.split('{').next().unwrap_or(entry);
        let (name, parameters) = match head.split_once('(') {
            Some((name, rest)) => (name.trim(), rest.split(')').next().unwrap_or("")),
            None => (head.trim(), ""),
        };
        let parameters: Vec<&str> = parameters
            .split(',')
            .filter(|text| text.contains(".param"))
            .collect();
        let specified = duration_from_comment(ptx, name, &parameters)?;
        let length = specified.unwrap_or_else(|| duration_from_name(name, &parameters));
        kernels.insert(name.to_owned(), length);
    }
    Ok(kernels)
}

/// Returns the parameters with addresses for stamps, by kernel.
fn parse_stamps(ptx: &str) -> CudaResult<BTreeMap<String, usize>> {
    let statements = ptx
        .lines()
        .filter_map(|line| line.trim().strip_prefix(STAMPS_COMMENT));
    let parse = |statement: &str| {
        let (kernel, parameter) = statement.split_once("= parameter ")?;
        Some((kernel.trim().to_owned(), parameter.trim().parse().ok()?))
    };
    statements
        .map(|statement| parse(statement).ok_or(INVALID_PTX))
        .collect()
}

fn without_comments(ptx: &str) -> String {
    let mut code = String::new();
    let mut rest = ptx;
    while let Some((before, comment)) = rest.split_once("/*") {
        code.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    code.push_str(rest);
    code.lines()
        .map(|line| line.split("//").next().unwrap_or(""))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns the size of an integer parameter in bytes.
fn integer(parameter: &str) -> Option<usize> {
    parameter.split_whitespace().find_map(|token| match token {
        ".u64" | ".s64" | ".b64" => Some(8),
        ".u32" | ".s32" | ".b32" => Some(4),
        _ => None,
    })
}

fn parameter(parameters: &[&str], index: usize, unit: &str) -> Option<KernelDuration> {
    let bytes = integer(parameters.get(index)?)?;
    let unit = nanoseconds(&format!("1{unit}"))?;
    Some(KernelDuration::Parameter { index, bytes, unit })
}

fn duration_from_comment(
    ptx: &str,
    name: &str,
    parameters: &[&str],
) -> CudaResult<Option<KernelDuration>> {
    let statements = ptx
        .lines()
        .filter_map(|line| line.trim().strip_prefix(DURATION_COMMENT));
    for statement in statements {
        let Some((kernel, length)) = statement.split_once('=') else {
            return Err(INVALID_PTX);
        };
        if kernel.trim() != name {
            continue;
        }
        let words: Vec<&str> = length.split_whitespace().collect();
        let length = match words[..] {
            [length] => nanoseconds(length).map(KernelDuration::Ns),
            ["parameter", index, unit] => index
                .parse()
                .ok()
                .and_then(|index| parameter(parameters, index, unit)),
            _ => None,
        };
        return length.map(Some).ok_or(INVALID_PTX);
    }
    Ok(None)
}

/// Reads the duration from a kernel's name: `work_20us` takes 20 µs, and `spin_ns(.param .u64
/// duration)` the value of its first parameter.
fn duration_from_name(name: &str, parameters: &[&str]) -> KernelDuration {
    let Some((_, last)) = name.rsplit_once('_') else {
        return KernelDuration::Default;
    };
    let by_parameter = || match last {
        "ns" | "us" | "ms" => parameter(parameters, 0, last),
        _ => None,
    };
    let has_unit = last.ends_with('s') && last.starts_with(|first: char| first.is_ascii_digit());
    let specified = if has_unit {
        nanoseconds(last).map(KernelDuration::Ns)
    } else {
        None
    };
    specified
        .or_else(by_parameter)
        .unwrap_or(KernelDuration::Default)
}

/// The dimensions of a launch: blocks per grid, threads per block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaunchDims {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    /// Dynamic shared memory per block.
    pub(crate) shared_bytes: u32,
}

impl Function {
    pub(crate) fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }
}

impl LaunchDims {
    fn is_valid(&self) -> bool {
        let threads: u64 = self.block.into_iter().map(u64::from).product();
        self.grid.into_iter().all(|blocks| blocks > 0) && (1..=1_024).contains(&threads)
    }
}

impl DriverState {
    /// Loads PTX or a binary into the current context. Returns the module.
    pub(crate) fn load_module(&mut self, ptx: Option<&str>) -> CudaResult<usize> {
        let context = self.usable_current()?;
        let kernels = ptx.map(parse).transpose()?;
        let stamps = ptx.map(parse_stamps).transpose()?.unwrap_or_default();
        Ok(self.modules.insert(Module {
            context,
            kernels,
            stamps,
            functions: BTreeMap::new(),
        }))
    }

    pub(crate) fn unload_module(&mut self, handle: usize) -> CudaResult {
        let removed = self.modules.remove(handle, Missing::Destroyed);
        let module = removed.map_err(|missing| self.report_missing(missing, handle))?;
        for function in module.functions.into_values() {
            // A function lives until its module is unloaded.
            let _ = self.functions.remove(function, Missing::Destroyed);
        }
        self.usable(module.context)
    }

    /// Returns the kernel with this name.
    pub(crate) fn find_function(&mut self, handle: usize, name: &str) -> CudaResult<usize> {
        let module = match self.modules.get_mut(handle) {
            Ok(module) => module,
            Err(missing) => return Err(self.report_missing(missing, handle)),
        };
        if let Some(function) = module.functions.get(name) {
            return Ok(*function);
        }
        let length = match &module.kernels {
            Some(kernels) => *kernels.get(name).ok_or(NOT_FOUND)?,
            None => duration_from_name(name, &[]),
        };
        let function = Function {
            context: module.context,
            name: name.into(),
            length,
            stamps: module.stamps.get(name).copied(),
        };
        let function = self.functions.insert(function);
        module.functions.insert(name.to_owned(), function);
        Ok(function)
    }

    pub(crate) fn function(&mut self, handle: usize) -> CudaResult<&Function> {
        if let Err(missing) = self.functions.get(handle) {
            return Err(self.report_missing(missing, handle));
        }
        self.functions.get(handle).map_err(|_| INVALID_HANDLE)
    }

    /// Queues a kernel.
    pub(crate) fn launch(
        &mut self,
        function: usize,
        shape: LaunchDims,
        stream: usize,
        parameters: &Parameters,
    ) -> CudaResult {
        let kernel = self.function(function)?;
        let (context, name, length) = (kernel.context, Arc::clone(&kernel.name), kernel.length);
        let stamps = kernel.stamps;
        if !shape.is_valid() {
            return Err(INVALID_VALUE);
        }
        let key = self.stream_key(stream)?;
        if self.stream(key)?.context != context {
            self.misuse("kernel and stream belong to different contexts", function);
            return Err(INVALID_HANDLE);
        }
        let ns = match (self.settings.kernels.get(&*name).copied(), length) {
            (Some(ns), _) | (None, KernelDuration::Ns(ns)) => ns,
            (None, KernelDuration::Default) => self.settings.default_kernel_ns,
            (None, KernelDuration::Parameter { index, bytes, unit }) => {
                parameters.integer(index, bytes)?.saturating_mul(unit)
            }
        };
        let to = match stamps {
            Some(index) => parameters.integer(index, size_of::<u64>())?,
            None => 0,
        };
        let effect = match usize::try_from(to) {
            Ok(to) if to > 0 => Effect::Stamp { to },
            _ => Effect::None,
        };
        let mut task = Task::new(ActivityKind::Kernel, TaskDuration::Ns(ns));
        task.name = Some(name);
        task.effect = effect;
        task.detail = Detail::Kernel(shape);
        self.enqueue(key, task).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::{INVALID_PTX, KernelDuration, parse};

    const HEAD: &str = ".version 7.0\n.target sm_75\n";

    fn length(ptx: &str, kernel: &str) -> KernelDuration {
        parse(&format!("{HEAD}{ptx}")).unwrap()[kernel]
    }

    #[test]
    fn a_kernel_states_its_length_in_its_name() {
        assert_eq!(
            length(".visible .entry work_20us() { ret; }", "work_20us"),
            KernelDuration::Ns(20_000)
        );
        assert_eq!(
            length(".entry work_20() { ret; }", "work_20"),
            KernelDuration::Default
        );
        assert_eq!(
            length(".entry axpy{ ret; }", "axpy"),
            KernelDuration::Default
        );
    }

    #[test]
    fn a_kernel_takes_its_length_from_a_parameter() {
        let spin = ".entry spin_ns(\n .param .u64 spin_ns_param_0\n)\n{ ret; }";
        assert_eq!(
            length(spin, "spin_ns"),
            KernelDuration::Parameter {
                index: 0,
                bytes: 8,
                unit: 1
            }
        );
        let spin = ".entry spin_us(.param .align 4 .u32 a, .param .u64 b) { ret; }";
        assert_eq!(
            length(spin, "spin_us"),
            KernelDuration::Parameter {
                index: 0,
                bytes: 4,
                unit: 1_000
            }
        );
        assert_eq!(
            length(".entry spin_ns() { ret; }", "spin_ns"),
            KernelDuration::Default
        );
    }

    #[test]
    fn a_comment_states_the_length_of_a_kernel() {
        let ptx = "// simulated: a = 3ms\n// simulated: b = parameter 1 us\n\
            .entry a() {} .entry b(.param .f32 x, .param .u32 y) {} // .entry c()\n/* .entry d() */";
        assert_eq!(length(ptx, "a"), KernelDuration::Ns(3_000_000));
        assert_eq!(
            length(ptx, "b"),
            KernelDuration::Parameter {
                index: 1,
                bytes: 4,
                unit: 1_000
            }
        );
        assert_eq!(parse(&format!("{HEAD}{ptx}")).unwrap().len(), 2);
    }

    #[test]
    fn what_is_no_ptx_is_refused() {
        assert_eq!(parse("hello"), Err(INVALID_PTX));
        assert_eq!(
            parse(&format!("{HEAD}// simulated: a = soon\n.entry a() {{}}")),
            Err(INVALID_PTX)
        );
    }
}
