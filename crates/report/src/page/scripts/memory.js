// Values over time: the memory in use, and what else a window counted.

const COUNTER = { width: 900, height: 120, bottom: 100 };

/**
 * A counter as the profiler writes it; the times are differences.
 * @typedef {{name: string, unit: string, device: number|null, time: number[], value: number[]}} CounterData
 */

/** @param {CounterData[]} counters @param {number} duration */
function memoryView(counters, duration) {
  const isMemory = counters.every(({ unit }) => unit === 'bytes');
  return addView('memory', isMemory ? 'Memory' : 'Memory and counters',
    el('div', { class: 'counters' }, ...counters.map((counter) => counterChart(counter, duration))));
}

/**
 * Draws a counter: each value holds until the next one.
 * @param {CounterData} counter
 * @param {number} duration
 */
function counterChart({ name, unit, device, time: differences, value }, duration) {
  const format = unit === 'bytes' ? (number) => bytes(Math.round(number)) : (number) => `${digits(number)} ${unit}`.trim();
  const most = value.reduce((most, each) => Math.max(most, each), 0);
  const least = value.reduce((least, each) => Math.min(least, each), 0);
  const y = (number) => COUNTER.bottom - ((number - least) / (most - least || 1)) * (COUNTER.bottom - 14);
  let ns = 0;
  let line = '';
  value.forEach((number, index) => {
    ns += differences[index];
    const x = ((COUNTER.width * ns) / duration).toFixed(1);
    line += index === 0 ? `M${x},${y(number).toFixed(1)}` : `H${x}V${y(number).toFixed(1)}`;
  });
  line += `H${COUNTER.width}`;
  const peak = value.indexOf(most);
  const peakAt = differences.slice(0, peak + 1).reduce((sum, each) => sum + each, 0);
  const caption = device === null ? printable(name) : `${printable(name)}, GPU ${device}`;
  const description = `at most ${format(most)}, after ${time(Math.max(peakAt, 0))}; ${format(value[value.length - 1])} at the end`;
  const base = y(0);
  const picture = svg('svg', {
    viewBox: `0 0 ${COUNTER.width} ${COUNTER.height}`, role: 'img', 'aria-label': `${caption}: ${description}`,
    preserveAspectRatio: 'none',
  }, svg('path', { class: 'area', d: `${line}V${base}H0Z` }), svg('path', { class: 'stroke', d: line }),
  svg('line', { class: 'axis', x1: 0, x2: COUNTER.width, y1: base, y2: base }));
  return el('figure', { class: device === null ? 'cpu' : 'cuda' },
    el('figcaption', {}, el('strong', {}, caption), ` ${description}`), picture,
    el('p', { class: 'ends' }, el('span', {}, '0'), el('span', {}, time(duration))));
}
