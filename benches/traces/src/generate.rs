//! A trace as `PyTorch` writes it: a thread calls operators, three of four launch a kernel on a stream of any GPU.

#![allow(
    clippy::cast_possible_truncation,
    reason = "places in lists are below their lengths"
)]

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

const OPERATORS: [&str; 4] = [
    "aten::linear",
    "aten::addmm",
    "aten::layer_norm",
    "aten::copy_",
];
const KERNELS: [&str; 3] = [
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
    "flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t> >",
];

/// Numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

/// Writes a trace of at least so many events. Returns how many it has.
pub(crate) fn trace(path: &Path, events: u64, gpus: u64) -> io::Result<u64> {
    let mut out = BufWriter::new(File::create(path)?);
    let mut numbers = Numbers(7);
    let mut free = vec![0; gpus as usize];
    let (mut count, mut at, mut id) = (0, 0, 0);
    write!(out, "{{\n  \"schemaVersion\": 1,\n  \"traceEvents\": [\n")?;
    let time = |ns: u64| format!("{}.{:03}", ns / 1000, ns % 1000);
    let event = |(phase, category, name): (&str, &str, &str),
                 track: (u64, u64),
                 begin: u64,
                 rest: &str| {
        let ((process, thread), begin) = (track, time(1_700_000_000_000_000_000 + begin));
        format!(
            "  {{\n    \"ph\": \"{phase}\", \"cat\": \"{category}\", \"name\": \"{name}\", \"pid\": {process}, \"tid\": {thread},\n    \"ts\": {begin}, {rest}\n  }}"
        )
    };
    let span = |begin, end, args: &str| {
        let duration = time(end - begin);
        format!("\"dur\": {duration},\n    \"args\": {{\n      {args}\n    }}")
    };
    while count < events {
        (id, at) = (id + 1, at + 1500);
        let thread = (1000, 1000);
        let (outer, inner, launch) = (at, at + 1000, at + 2000 + numbers.below(900));
        at = launch + 3000 + numbers.below(3000);
        let mut add = |event: String| {
            count += 1;
            write!(out, "{}{event}", if count > 1 { ",\n" } else { "" })
        };
        if numbers.below(4) > 0 {
            let gpu = numbers.below(gpus);
            let begin = free[gpu as usize].max(at + 1500) + 500;
            let end = begin + 2000 + numbers.below(12_000);
            free[gpu as usize] = end;
            let args = format!("\"External id\": {id}, \"cbid\": 211, \"correlation\": {id}");
            add(event(
                ("X", "cuda_runtime", "cudaLaunchKernel"),
                thread,
                launch,
                &span(launch, at, &args),
            ))?;
            add(event(
                ("s", "ac2g", "ac2g"),
                thread,
                launch,
                &format!("\"id\": {id}"),
            ))?;
            let args = format!(
                "\"External id\": {id}, \"queued\": 0, \"device\": {gpu}, \"context\": 1,\n      \"stream\": 7, \"correlation\": {id},\n      \"registers per thread\": 32,\n      \"shared memory\": 0,\n      \"blocks per SM\": 3.878788,\n      \"warps per SM\": 15.515152,\n      \"grid\": [512, 1, 1],\n      \"block\": [128, 1, 1],\n      \"est. achieved occupancy %\": 24"
            );
            let name = KERNELS[numbers.below(3) as usize];
            add(event(
                ("X", "kernel", name),
                (gpu, 7),
                begin,
                &span(begin, end, &args),
            ))?;
            add(event(
                ("f", "ac2g", "ac2g"),
                (gpu, 7),
                begin,
                &format!("\"id\": {id}, \"bp\": \"e\""),
            ))?;
        }
        let args = format!(
            "\"External id\": {id},\"Record function id\": 0, \"Concrete Inputs\": [\"\", \"\", \"\"], \"Input type\": [\"float\", \"float\", \"Scalar\"], \"Input Dims\": [[16, 1024], [1024, 1024], []], \"Ev Idx\": {id}"
        );
        for (begin, end) in [(inner, at + 500), (outer, at + 1000)] {
            let name = OPERATORS[numbers.below(4) as usize];
            add(event(
                ("X", "cpu_op", name),
                thread,
                begin,
                &span(begin, end, &args),
            ))?;
        }
        at += 1500;
    }
    write!(out, "\n  ]\n}}\n")?;
    out.flush()?;
    Ok(count)
}
