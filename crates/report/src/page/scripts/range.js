// The sums of a range of the time line.

/** How many functions and kernels of a range are listed. */
const LISTED_IN_RANGE = 10;

/** Returns how much of the range spans cover, each instant once. @param {Array<[number, number]>} spans in the order of starts */
function covering(spans) {
  let [sum, until] = [0, -Infinity];
  for (const [start, end] of spans) {
    sum += Math.max(end - Math.max(start, until), 0);
    until = Math.max(until, end);
  }
  return sum;
}

/**
 * Adds up what is in a range: for each name the time of its slices without those inside, on threads and on streams; and for
 * each device how long it was busy, and how long it is not known what it did, by the account of the strip.
 * @param {Window} window
 * @param {number} from
 * @param {number} to
 */
function sumsOf(window, from, to) {
  /** @type {Map<number, number>[]} */
  const [onThreads, onStreams] = [new Map(), new Map()];
  /** @type {Map<string, {label: string, process: string, spans: Array<[number, number]>, unknown: Array<[number, number]>}>} */
  const devices = new Map();
  for (const { device, process, has_work: hasWork } of window.tracks) {
    const label = device === undefined ? 'GPU' : `GPU ${device}`;
    const key = `${process}/${device}`;
    if (hasWork) devices.set(key, { label, process, spans: [], unknown: window.notRecorded.get(key) ?? [] });
  }
  const processes = new Set([...devices.values()].map(({ process }) => process));
  for (let slice = 0; slice < window.count; slice += 1) {
    const [start, end] = [Math.max(window.start[slice], from), Math.min(window.end[slice], to)];
    if (end <= start) continue;
    const { device, process, kind } = window.tracks[window.track[slice]];
    const sums = kind === 'stream' ? onStreams : onThreads;
    if (window.isWork[slice]) devices.get(`${process}/${device}`)?.spans.push([start, end]);
    // Where kernels are known, they are the work of a stream.
    if (kind === 'stream' && window.hasWork && !window.isWork[slice]) continue;
    const add = (name, ns) => sums.set(name, (sums.get(name) ?? 0) + ns);
    add(window.name[slice], end - start);
    const outer = window.outer[slice];
    if (outer >= 0 && (kind !== 'stream' || window.isWork[slice] === window.isWork[outer])) add(window.name[outer], start - end);
  }
  const listed = (sums) => [...sums].filter(([, ns]) => ns > 0).sort(([, left], [, right]) => right - left);
  const busy = [...devices.values()].map(({ label, process, spans, unknown }) => {
    spans.sort(([left], [right]) => left - right);
    const inside = unknown.filter(([start, end]) => start < to && end > from).map(([start, end]) => [Math.max(start, from), Math.min(end, to)]);
    const known = covering(spans);
    const both = covering([...spans, ...inside].sort(([left], [right]) => left - right));
    return { label: processes.size > 1 ? `${label} of ${process}` : label, busy: known, unrecorded: both - known, idle: to - from - both };
  });
  return { devices: busy, onThreads: listed(onThreads), onStreams: listed(onStreams) };
}

/**
 * Shows the sums of a range.
 * @param {Window} window
 * @param {[number, number]} range
 * @param {(name: number) => Node} label
 */
function rangePanel(window, [from, to], label) {
  const { devices, onThreads, onStreams } = sumsOf(window, from, to);
  const part = (ns) => `${time(ns)} (${share(ns / (to - from))})`;
  const lines = devices.map(({ label, busy, idle, unrecorded }) => (
    `${label}: busy for ${part(busy)}, idle for ${part(idle)}${unrecorded > 0 ? `, not recorded for ${part(unrecorded)}` : ''}.`));
  const table = (title, clock, sums) => (sums.length === 0 ? null : el('div', {}, el('table', {},
    el('thead', {}, el('tr', {}, el('th', { scope: 'col', class: clock }, title), el('th', { scope: 'col' }, 'Self'), el('th', { scope: 'col' }, 'Of the range'))),
    el('tbody', {}, ...sums.slice(0, LISTED_IN_RANGE).map(([name, ns]) => el('tr', {},
      el('th', { scope: 'row' }, label(name)), el('td', {}, time(ns)), el('td', {}, share(ns / (to - from))))))),
  sums.length > LISTED_IN_RANGE ? el('p', { class: 'more' }, `and ${grouped(sums.length - LISTED_IN_RANGE)} more`) : null));
  return [
    el('p', { role: 'status' }, [`Range of ${time(to - from)}, from ${time(from)}.`, ...lines,
      window.omitted > 0 ? 'Slices that this page leaves out are in no sum.' : ''].join(' ').trim()),
    el('div', { class: 'panels' }, table('On all threads', 'cpu', onThreads),
      table(window.hasWork ? 'Kernels, copies and fills' : 'On all streams', 'cuda', onStreams)),
  ];
}
