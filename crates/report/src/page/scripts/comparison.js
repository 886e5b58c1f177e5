// The table of two runs: sorted by any of its columns.

/** Formats a change of a time with its sign. @param {number} ns */
const changed = (ns) => (ns === 0 ? time(0) : `${ns > 0 ? '+' : '−'}${time(Math.abs(ns))}`);
/** Formats a ratio as the table without script has it. @param {number} ratio */
const hundredths = (ratio) => ratio.toFixed(2);
const PAIR_TEXTS = [String, grouped, grouped, time, time, hundredths, changed, time, time, hundredths, changed];
/** The columns that are signed changes, and those that are ratios. */
const CHANGES = [6, 10];
const RATIOS = [5, 9];
/** Where there is no room, high ranks are left out first; and the class of the header above each column. */
const PAIR_RANKS = [0, 6, 6, 5, 5, 3, 2, 4, 4, 1, 1];
const PAIR_GROUPS = [undefined, 'calls', 'calls', 'cpu', 'cpu', 'cpu', 'cpu', 'cuda', 'cuda', 'cuda', 'cuda'];

class Comparison {
  /**
   * @param {HTMLElement} view the section that has the table without script
   * @param {any[][]} pairs name; calls before and now; CPU means before and now; CUDA means before and now; by how much the
   *   self times on the CPU and on the GPU have grown
   */
  constructor(view, pairs) {
    const ratio = (before, now) => (before > 0 && now !== null ? now / before : null);
    this.rows = pairs.map(([name, callsBefore, callsNow, cpuBefore, cpuNow, cudaBefore, cudaNow, cpuChange, cudaChange]) => [
      name, callsBefore, callsNow, cpuBefore, cpuNow, ratio(cpuBefore, cpuNow), cpuChange,
      cudaBefore, cudaNow, ratio(cudaBefore, cudaNow), cudaChange,
    ]);
    this.table = /** @type {HTMLTableElement} */ (view.querySelector('table'));
    this.body = this.table.tBodies[0];
    this.headers = /** @type {HTMLElement[]} */ ([...view.querySelectorAll('thead th:not([scope=colgroup])')]);
    this.groups = /** @type {HTMLTableCellElement[]} */ ([...view.querySelectorAll('thead th[scope=colgroup]')]);
    this.headers.forEach((header, index) => {
      const title = header.textContent ?? '';
      header.replaceChildren(el('button', { type: 'button', click: () => this.sortBy(index) }, title));
    });
    // As the table is without script.
    this.sort = this.headers.length - 1;
    this.sign = 1;
    this.sayOrder();
    onWidth(view, () => this.fit());
  }

  /** Leaves out the columns for which there is no room, never the one by which rows are sorted. */
  fit() {
    const hide = (hidden) => hideColumns(this.body, this.headers, this.groups, PAIR_GROUPS, hidden);
    hide(new Set());
    if (this.table.offsetWidth > 0) {
      hide(columnsWithoutRoom(this.table, this.headers, PAIR_RANKS.slice(0, this.headers.length), this.sort));
    }
  }

  /** @param {number} index */
  sortBy(index) {
    this.sign = this.sort === index ? -this.sign : 1;
    this.sort = index;
    const value = (row) => (CHANGES.includes(index) && row[index] !== null ? Math.abs(row[index]) : row[index]);
    const sorted = [...this.rows].sort((left, right) => order(value(left), value(right), this.sign));
    this.body.replaceChildren(...sorted.map((row) => this.rowElement(row)));
    this.sayOrder();
    this.fit();
  }

  sayOrder() {
    const direction = (this.sort === 0 ? -1 : 1) * this.sign;
    this.headers.forEach((header, at) => {
      set(header, { 'aria-sort': at === this.sort ? (direction > 0 ? 'descending' : 'ascending') : null });
    });
  }

  /** @param {any[]} row */
  rowElement([name, ...values]) {
    const shown = values.slice(0, this.headers.length - 1);
    return el('tr', {}, el('th', { scope: 'row' }, nameElement(name)), ...shown.map((value, index) => this.cell(value, index + 1)));
  }

  /** Returns a cell that says whether less time was taken. @param {number|null} value @param {number} column */
  cell(value, column) {
    const isStart = column === 3 || column === 7;
    if (value === null) return el('td', { class: isStart ? 'clock-start' : null });
    const text = PAIR_TEXTS[column](value);
    const growth = CHANGES.includes(column) ? value : RATIOS.includes(column) && text !== '1.00' ? value - 1 : 0;
    if (growth === 0) return el('td', { class: isStart ? 'clock-start' : null }, text);
    return el('td', { class: growth < 0 ? 'better' : 'worse' }, `${text} ${growth < 0 ? '▾' : '▴'}`);
  }
}
