// The numbers of the page, as the profiler wrote them.

/**
 * The times of all calls of a row on one clock, in nanoseconds. Without a call, those of single calls are null.
 * @typedef {{calls: number, total_ns: number, total_percent: number, self_ns: number, self_percent: number,
 *   mean_ns: number|null, std_ns: number|null, min_ns: number|null, max_ns: number|null, p50_ns: number|null,
 *   p95_ns: number|null, p99_ns: number|null}} Times
 */

/**
 * The calls of one function. `cpu` and `cuda` are null without such times. `gpu` is how long the GPUs were busy with their work,
 * and how long they waited for it.
 * @typedef {{name: string, location: string, calls: number, primitive_calls: number, futures: number,
 *   panicked: number, dropped_futures: number, open: number, out_of_order: number, without_cuda: number,
 *   too_short: boolean, streams: string[], cpu: Times|null, cuda: Times|null, launch_bound: number|null, verdict: string|null,
 *   gpu: [number, number]|undefined,
 *   cpu_histogram: number[]|null, cuda_histogram: number[]|null,
 *   history: Array<[number, number, number, number, number]>, index: number}} Row
 */

/**
 * The calls of one function from another one. `caller` is null for calls without a caller.
 * @typedef {{caller: string|null, callee: string, calls: number, cpu: number[]|null, cuda: number[]|null}} Edge
 */

/**
 * What a function launched itself, the longest total first, and how much more there is.
 * @typedef {{omitted: number, work: Array<{name: string, short: string, runs: number, total: number, mean: number}>}} Launched
 */

/**
 * `onTimeLine` returns what goes to the longest call of a function on the time line, or null if there is none.
 * @typedef {{rows: Row[], edges: Edge[]|null, omitted_rows: number, wall_ns: number, text: string, work: Map<string, Launched>,
 *   onTimeLine?: (name: string) => (() => void)|null}} Summary
 */

const TIMES = ['calls', 'total_ns', 'total_percent', 'self_ns', 'self_percent', 'mean_ns', 'std_ns', 'min_ns',
  'max_ns', 'p50_ns', 'p95_ns', 'p99_ns'];

/** Names the values of times. @param {number[]|null} values @returns {Times|null} */
function timesOf(values) {
  return values && /** @type {any} */ (Object.fromEntries(TIMES.map((key, index) => [key, values[index]])));
}

/** Unpacks the data. @returns {Promise<any>} */
async function unpack() {
  const packed = byId('data').textContent ?? '';
  const bytes = Uint8Array.from(atob(packed), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return JSON.parse(await new Response(stream).text());
}

/**
 * Reads the rows and edges of a summary, and what functions launched.
 * @param {any} summary
 * @param {any[]|null} work
 * @returns {Summary}
 */
function readSummary(summary, work) {
  summary.rows.forEach((row, index) => {
    Object.assign(row, { index, cpu: timesOf(row.cpu), cuda: timesOf(row.cuda) });
  });
  const name = (place) => (typeof place === 'number' ? summary.rows[place].name : place);
  summary.edges = summary.edges?.map(([caller, callee, calls, cpu, cuda]) => (
    { caller: name(caller), callee: name(callee), calls, cpu, cuda }
  )) ?? null;
  summary.work = new Map((work ?? []).map(([name, omitted, rows]) => [name, {
    omitted,
    work: rows.map(([name, short, runs, total, mean]) => ({ name, short, runs, total, mean })),
  }]));
  return summary;
}
