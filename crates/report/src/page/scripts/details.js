// The content of an open row of the table.

/** Names of the clocks, which also are classes of the style. */
const CLOCKS = [['cpu', 'CPU'], ['cuda', 'CUDA']];
const FIGURES = [
  ['Calls', 'calls', grouped], ['Total', 'total_ns', time], ['Self', 'self_ns', time], ['Mean', 'mean_ns', time],
  ['Deviation', 'std_ns', time], ['Minimum', 'min_ns', time], ['Median', 'p50_ns', time], ['p95', 'p95_ns', time],
  ['p99', 'p99_ns', time], ['Maximum', 'max_ns', time],
];
/** Counts that are shown only if there are any. */
const REMARKS = [
  ['panicked', 'call', 'ended with a panic'],
  ['dropped_futures', 'future', 'dropped before completion'],
  ['open', 'call', 'still open, in no column'],
  ['out_of_order', 'call', 'ended out of order, or on another thread: the self time is an upper bound'],
  ['without_cuda', 'call', 'without the GPU time they should have'],
];
/** How many callers and callees are listed. */
const LISTED = 12;

/**
 * Shows all that is known of a function.
 * @param {Row} row
 * @param {Summary} summary
 * @param {(name: string) => void} show called for the name of another function
 */
function details(row, { rows, edges, wall_ns: run, work, onTimeLine }, show) {
  const goes = onTimeLine?.(row.name);
  const launched = work.get(row.name);
  const facts = [row.location, ...remarks(row)].filter((fact) => fact !== '');
  return el('div', { class: 'inner' },
    el('p', { class: 'full', tabindex: row.name.length > 800 ? 0 : null }, el('bdi', {}, printable(row.name))),
    el('p', { class: 'location' }, facts.map(printable).join(' · ')),
    goes ? button('Longest call on the time line', goes, { class: 'to-time' }) : null,
    el('div', { class: 'panels' },
      figuresTable(row),
      ...CLOCKS.filter(([clock]) => row[clock] && row[`${clock}_histogram`])
        .map(([clock]) => histogramChart(row[`${clock}_histogram`], row[clock], clock)),
      row.history.length > 1 ? historyChart(row.history, run) : null,
      launched ? workTable(launched, rows, show) : null,
      ...neighbours(row, edges, launched, show)));
}

/** Returns what is unusual about the calls. @param {Row} row */
function remarks(row) {
  const found = REMARKS.filter(([key]) => row[key] > 0)
    .map(([key, noun, what]) => `${counted(row[key], noun)} ${what}`);
  const recursive = row.calls - row.primitive_calls;
  if (recursive > 0) found.push(`${counted(recursive, 'recursive call')}`);
  if (row.futures > 0) found.push(`${counted(row.futures, 'future')}, which also wait`);
  if (row.too_short) found.push('calls too short to be timed one by one: only the mean is exact');
  if (row.launch_bound !== null) found.push(`${share(row.launch_bound)} of the calls launch-bound`);
  if (row.streams.length > 0) found.push(`stream ${row.streams.join(', ')}`);
  return found;
}

/** @param {Row} row */
function figuresTable(row) {
  const clocks = CLOCKS.filter(([clock]) => row[clock]);
  const head = clocks.map(([clock, title]) => el('th', { scope: 'col', class: clock }, title));
  const body = FIGURES.map(([title, key, format]) => el('tr', {},
    el('th', { scope: 'row' }, title), ...clocks.map(([clock]) => el('td', {}, row[clock][key] === null ? '–' : format(row[clock][key])))));
  return el('table', {}, el('thead', {}, el('tr', {}, el('td', {}), ...head)), el('tbody', {}, ...body));
}

/**
 * Lists the kernels, copies and fills that a function launched itself.
 * @param {Launched} launched
 * @param {Row[]} rows
 * @param {(name: string) => void} show
 */
function workTable({ omitted, work }, rows, show) {
  const label = ({ name, short }) => (rows.some((row) => row.name === name)
    ? el('button', { type: 'button', class: 'name', click: () => show(name) }, nameElement(short)) : nameElement(short));
  const lines = work.slice(0, LISTED).map((each) => el('tr', {}, el('th', { scope: 'row' }, label(each)),
    el('td', {}, grouped(each.runs)), el('td', {}, time(each.total)), el('td', {}, time(each.mean))));
  const heads = ['Kernels, copies and fills', 'Runs', 'Total', 'Mean'];
  const more = work.length - lines.length + omitted;
  return el('div', { class: 'work' }, el('table', {},
    el('thead', {}, el('tr', {}, ...heads.map((title) => el('th', { scope: 'col', class: 'cuda' }, title)))),
    el('tbody', {}, ...lines)), more > 0 ? el('p', { class: 'more' }, `and ${grouped(more)} more`) : null);
}

/**
 * Lists callers and callees.
 * @param {Row} row
 * @param {Edge[]|null} edges
 * @param {Launched|undefined} launched work that is listed already
 * @param {(name: string) => void} show
 */
function neighbours(row, edges, launched, show) {
  if (!edges) return [];
  const callers = edges.filter((edge) => edge.callee === row.name);
  const listed = new Set(launched?.work.map(({ name }) => name));
  const callees = edges.filter((edge) => edge.caller === row.name && !listed.has(edge.callee));
  return [['Called by', 'caller', callers], ['Calls', 'callee', callees]]
    .filter(([, , edges]) => edges.length > 0)
    .map(([title, side, edges]) => edgesTable(title, side, edges, show));
}

/**
 * @param {string} title
 * @param {'caller'|'callee'} side the other function of each edge
 * @param {Edge[]} edges
 * @param {(name: string) => void} show
 */
function edgesTable(title, side, edges, show) {
  const clocks = CLOCKS.filter(([clock]) => edges.some((edge) => edge[clock]));
  const size = (edge) => (edge.cpu?.[0] ?? 0) + (edge.cuda?.[0] ?? 0);
  const sorted = [...edges].sort((left, right) => size(right) - size(left));
  const rows = sorted.slice(0, LISTED).map((edge) => el('tr', {},
    el('th', { scope: 'row' }, edge[side] === null ? 'no measured function'
      : el('button', { class: 'name', click: () => show(edge[side]) }, nameElement(edge[side]))),
    el('td', {}, grouped(edge.calls)),
    ...clocks.map(([clock]) => el('td', {}, edge[clock] ? time(edge[clock][0]) : ''))));
  const more = sorted.length - LISTED;
  return el('div', {}, el('table', {},
    el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, title), el('th', { scope: 'col' }, 'Calls'),
      ...clocks.map(([clock, name]) => el('th', { scope: 'col', class: clock }, `${name} total`)))),
    el('tbody', {}, ...rows)),
    more > 0 ? el('p', { class: 'more' }, `and ${counted(more, 'more function')}`) : null);
}
