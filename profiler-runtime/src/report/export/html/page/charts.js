// Small charts of an open row, as SVG.

const CHART = { width: 380, height: 110, bottom: 92 };

/**
 * Draws how many calls took how long. The axis of times is logarithmic, as the buckets are.
 * @param {number[]} histogram buckets for each power of two, the number of the first bucket, then calls by bucket
 * @param {Times} times
 * @param {string} clock `cpu` or `cuda`
 */
function histogramChart([perOctave, first, ...counts], times, clock) {
  const most = Math.max(...counts);
  const limit = (bucket) => 2 ** ((first + bucket) / perOctave);
  const width = Math.min(CHART.width / counts.length, 28);
  const x = (ns) => (Math.log2(ns) * perOctave - first) * width;
  const bars = counts.map((calls, bucket) => {
    const height = calls === 0 ? 0 : Math.max(1.5, (calls / most) * (CHART.bottom - 14));
    const label = `${time(limit(bucket))} to ${time(limit(bucket + 1))}: ${counted(calls, 'call')}`;
    return svg('rect', {
      x: bucket * width + 0.5, y: CHART.bottom - height, width: Math.max(0.5, width - 1), height,
    }, svg('title', {}, label));
  });
  const end = counts.length * width;
  const at = (ns) => Math.min(Math.max(x(ns), 0), end);
  const percentiles = [['p50', times.p50_ns], ['p95', times.p95_ns]].map(([label, ns]) => svg('g', {},
    svg('line', { class: 'stroke', x1: at(ns), x2: at(ns), y1: 12, y2: CHART.bottom }),
    svg('text', { x: at(ns) + 3, y: 18 }, label)));
  return chart(clock, `Calls by ${clock.toUpperCase()} time`, [
    svg('g', { class: 'bars' }, ...bars), axis(end), ...percentiles,
    svg('text', { x: 0, y: CHART.height }, time(limit(0))),
    svg('text', { x: end, y: CHART.height, 'text-anchor': 'end' }, time(limit(counts.length))),
  ], `${counted(times.calls, 'call')}, ${time(times.min_ns)} to ${time(times.max_ns)}, median ${time(times.p50_ns)}, `
    + `95th percentile ${time(times.p95_ns)}`);
}

/** Draws the line that charts stand on. @param {number} end */
const axis = (end) => svg('line', { class: 'axis', x1: 0, x2: end, y1: CHART.bottom + 0.5, y2: CHART.bottom + 0.5 });

/**
 * Puts a chart and its caption together. Readers of screens get the description.
 * @param {string} clock
 * @param {string} caption
 * @param {Node[]} content
 * @param {string} description
 */
function chart(clock, caption, content, description) {
  const picture = svg('svg', {
    viewBox: `0 0 ${CHART.width} ${CHART.height + 4}`, role: 'img', 'aria-label': `${caption}: ${description}`,
  }, ...content);
  return el('figure', { class: clock }, el('figcaption', {}, caption), picture);
}
