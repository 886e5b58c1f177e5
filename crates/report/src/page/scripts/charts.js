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
    // Both ends have no room below few bars.
    ...(end < CHART.width / 3 ? [svg('text', { x: 0, y: CHART.height }, `${time(limit(0))} to ${time(limit(counts.length))}`)] : [
      svg('text', { x: 0, y: CHART.height }, time(limit(0))),
      svg('text', { x: end, y: CHART.height, 'text-anchor': 'end' }, time(limit(counts.length))),
    ]),
  ], `${counted(times.calls, 'call')}, ${time(times.min_ns)} to ${time(times.max_ns)}, median ${time(times.p50_ns)}, `
    + `95th percentile ${time(times.p95_ns)}`);
}

/**
 * Draws how much of each span of the run a function took, on either clock.
 * @param {Row['history']} history start and length of a span, calls, and self times on the CPU and on the GPU
 * @param {number} run the length of the run
 */
function historyChart(history, run) {
  const part = (point, clock) => point[clock === 'cpu' ? 3 : 4] / Math.max(point[1], 1);
  const clocks = CLOCKS.filter(([clock]) => history.some((point) => part(point, clock) > 0));
  const most = Math.max(...history.flatMap((point) => clocks.map(([clock]) => part(point, clock))));
  const x = (ns) => ((ns / run) * CHART.width).toFixed(1);
  const y = (fraction) => (CHART.bottom - (fraction / most) * (CHART.bottom - 14)).toFixed(1);
  const line = (clock) => {
    let [path, end] = ['', -1];
    for (const point of history) {
      // Nothing happened between two spans that do not follow one another.
      if (point[0] !== end) path += end < 0 ? `M${x(point[0])},${y(0)}` : `V${y(0)}H${x(point[0])}`;
      end = point[0] + point[1];
      path += `V${y(part(point, clock))}H${x(end)}`;
    }
    return svg('g', { class: clock }, svg('path', { class: 'stroke', d: `${path}V${y(0)}` }));
  };
  const titles = clocks.map(([, title]) => title).join(' and ');
  return chart('', `${titles} self time over the run`, [
    ...clocks.map(([clock]) => line(clock)), axis(CHART.width),
    svg('text', { x: 0, y: 10 }, `${share(most)} of a span`),
    svg('text', { x: 0, y: CHART.height }, '0'),
    svg('text', { x: CHART.width, y: CHART.height, 'text-anchor': 'end' }, time(run)),
  ], `at most ${share(most)} of a span`);
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
  return el('figure', { class: clock || null }, el('figcaption', {}, caption), picture);
}
