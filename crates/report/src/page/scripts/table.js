// The table of functions: sorted, searched, restricted, with rows that open.

/** The columns of one clock; `share` draws a bar behind the number. Where there is no room, high ranks are left out first. */
const TIME_COLUMNS = [
  { key: 'self_ns', title: 'Self', format: time, rank: 3 },
  { key: 'self_percent', title: 'Self %', format: percent, share: true, rank: 4 },
  { key: 'total_ns', title: 'Total', format: time, rank: 7 },
  { key: 'mean_ns', title: 'Mean', format: time, rank: 8 },
  { key: 'p50_ns', title: 'p50', format: time, rank: 11 },
  { key: 'p95_ns', title: 'p95', format: time, rank: 9 },
  { key: 'p99_ns', title: 'p99', format: time, rank: 10 },
];
/** How many rows are shown until the user asks for all. */
const ROWS_AT_FIRST = 200;

/**
 * A column: the text of its cells, and the values that they are sorted by. Numbers are sorted from the largest, texts from A. `key` is
 * of a column of times.
 * @typedef {{title: string, key?: string, clock?: string, class?: string, value: (row: Row) => number|string|null,
 *   format: (value: any) => string, share?: boolean, rank: number}} Column
 */

/** @param {boolean} hasCuda @param {boolean} hasGpu @returns {Column[]} */
function tableColumns(hasCuda, hasGpu) {
  const ofClock = (clock) => TIME_COLUMNS.map((column, index) => (
    { ...column, clock, class: index === 0 ? 'clock-start' : undefined, value: (row) => row[clock]?.[column.key] ?? null }
  ));
  const ofGpu = [['GPU busy', 6], ['Idle caused', 2]].map(([title, rank], index) => (
    { title, rank, clock: 'cuda', format: time, value: (row) => row.gpu?.[index] ?? null }));
  const limit = { title: 'Limited by', class: 'limit', value: (row) => row.verdict, format: String, rank: 1 };
  return [
    { title: 'Function', value: (row) => row.name, format: String, rank: 0 },
    ...(hasCuda ? [limit] : []),
    { title: 'Calls', value: (row) => row.calls, format: grouped, rank: 5 },
    ...ofClock('cpu'),
    ...(hasCuda ? ofClock('cuda') : []),
    ...(hasGpu ? ofGpu : []),
  ];
}

/**
 * Orders two values; those that are missing come last in either direction.
 * @param {number|string|null} left
 * @param {number|string|null} right
 * @param {number} sign 1 to put the largest first, -1 for the smallest
 */
function order(left, right, sign) {
  if (left === null || right === null) return Number(left === null) - Number(right === null);
  if (typeof left === 'string') return sign * left.localeCompare(String(right));
  return sign * (Number(right) - left);
}

/**
 * Restricts rows as `pstats` does: an integer keeps that many of the first, a fraction that part of them, and anything
 * else is a regular expression for names. Throws if it is none.
 * @param {Row[]} rows
 * @param {string} restriction
 */
function restrict(rows, restriction) {
  if (restriction === '') return rows;
  if (/^\d+$/.test(restriction)) return rows.slice(0, Number(restriction));
  if (/^0?\.\d+$|^1\.0*$/.test(restriction)) return rows.slice(0, Math.floor(rows.length * Number(restriction) + 0.5));
  const pattern = new RegExp(restriction);
  return rows.filter((row) => pattern.test(row.name));
}

class FunctionTable {
  /**
   * @param {HTMLElement} view the section that has the table without script
   * @param {Summary} summary
   */
  constructor(view, summary) {
    const { rows } = summary;
    this.rows = rows;
    this.summary = summary;
    const hasGpu = rows.some((row) => row.gpu);
    this.columns = tableColumns(hasGpu || rows.some((row) => row.cuda), hasGpu);
    const last = this.columns.some((column) => column.clock === 'cuda') ? 'cuda' : 'cpu';
    this.sort = this.columns.findIndex((column) => column.clock === last);
    this.sign = 1;
    this.search = null;
    this.restriction = '';
    this.all = false;
    /** @type {Set<Row>} */
    this.open = new Set();
    /** The columns for which there is no room. @type {Set<number>} */
    this.hidden = new Set();
    this.isWhole = false;
    this.body = /** @type {HTMLTableSectionElement} */ (el('tbody'));
    this.status = el('span', { class: 'status', role: 'status' });
    this.problem = el('span', { class: 'status', id: 'restrict-problem', role: 'alert' });
    this.more = el('p', { class: 'more' });
    this.table = /** @type {HTMLTableElement} */ (view.querySelector('table'));
    this.table.className = 'rows';
    this.table.replaceChildren(this.head(), this.body);
    view.querySelector('.more')?.remove();
    view.querySelector('.scroll')?.before(this.controls());
    view.append(this.more);
    this.draw();
    onWidth(view, () => this.fit());
  }

  controls() {
    const search = el('input', { type: 'search', placeholder: 'Search names', 'aria-label': 'Search names', input: () => {
      this.search = searchFor(/** @type {any} */ (search).value.trim());
      this.draw();
    } });
    const restriction = el('input', {
      type: 'text', placeholder: 'Restrict: 20, 0.1 or ^app::', spellcheck: 'false',
      'aria-label': 'Restrict to a number of rows, a fraction of them, or a regular expression',
      'aria-describedby': 'restrict-problem',
      input: () => this.restrictTo(/** @type {HTMLInputElement} */ (restriction)),
    });
    this.whole = button('All columns', () => {
      this.isWhole = !this.isWhole;
      set(this.whole, { 'aria-pressed': String(this.isWhole) });
      this.fit();
    }, { 'aria-pressed': 'false', hidden: true });
    return el('div', { class: 'bar' }, search, restriction, this.whole, this.problem, this.status);
  }

  /** @param {HTMLInputElement} input */
  restrictTo(input) {
    const restriction = input.value.trim();
    try {
      restrict([], restriction);
      this.restriction = restriction;
      this.problem.textContent = '';
      set(input, { 'aria-invalid': null });
      this.draw();
    } catch {
      this.problem.textContent = 'not a number, a fraction or a regular expression';
      set(input, { 'aria-invalid': 'true' });
    }
  }

  head() {
    const headers = this.columns.map((column, index) => {
      const button = el('button', { type: 'button', click: () => this.sortBy(index) }, column.title);
      return el('th', { scope: 'col', rowspan: column.clock ? null : 2, class: column.clock ? null : column.class }, button);
    });
    this.headers = headers;
    const clocks = CLOCKS.filter(([clock]) => this.columns.some((column) => column.clock === clock));
    const single = headers.filter((_, index) => !this.columns[index].clock);
    const second = headers.filter((_, index) => this.columns[index].clock);
    this.groups = clocks.map(([clock, title]) => {
      const colspan = this.columns.filter((column) => column.clock === clock).length;
      return el('th', { colspan, scope: 'colgroup', class: clock }, title);
    });
    return el('thead', {}, el('tr', {}, ...single, ...this.groups), el('tr', {}, ...second));
  }

  /** Leaves out the columns for which there is no room, never the one by which rows are sorted. */
  fit() {
    if (this.table.parentElement?.clientWidth === 0) return;
    this.hide(new Set());
    const hidden = columnsWithoutRoom(this.table, this.headers, this.columns.map(({ rank }) => rank), this.sort);
    this.whole.hidden = hidden.size === 0;
    if (!this.isWhole) this.hide(hidden);
  }

  /** @param {Set<number>} hidden */
  hide(hidden) {
    if (hidden.size + this.hidden.size === 0) return;
    this.hidden = hidden;
    hideColumns(this.body, this.headers, this.groups, this.columns.map(({ clock }) => clock), hidden);
  }

  /** Sorts by a column; the second time in the other direction. @param {number} index */
  sortBy(index) {
    this.sign = this.sort === index ? -this.sign : 1;
    this.sort = index;
    this.draw();
  }

  /** Returns the rows to show, in their order. */
  selected() {
    const { value } = this.columns[this.sort];
    const sorted = [...this.rows].sort((left, right) => order(value(left), value(right), this.sign));
    const found = this.search ? sorted.filter((row) => row.name.search(this.search) >= 0) : sorted;
    return restrict(found, this.restriction);
  }

  draw() {
    const rows = this.selected();
    const shown = this.all ? rows : rows.slice(0, ROWS_AT_FIRST);
    this.body.replaceChildren(...shown.flatMap((row) => this.rowElements(row)));
    this.headers.forEach((header, index) => {
      const direction = (typeof this.columns[index].value(this.rows[0]) === 'string' ? -1 : 1) * this.sign;
      set(header, { 'aria-sort': index === this.sort ? (direction > 0 ? 'descending' : 'ascending') : null });
    });
    this.say(rows, shown);
    this.fit();
  }

  /**
   * Says how many functions the table shows, and what part of the time is theirs.
   * @param {Row[]} rows
   * @param {Row[]} shown
   */
  say(rows, shown) {
    const part = (clock) => rows.reduce((sum, row) => sum + (row[clock]?.self_percent ?? 0), 0);
    const parts = CLOCKS.filter(([clock]) => this.rows.some((row) => row[clock]))
      .map(([clock, title]) => `${Math.min(part(clock), 100).toFixed(1)} % of ${title}`);
    this.status.textContent = rows.length === this.rows.length ? counted(rows.length, 'function')
      : `${grouped(rows.length)} of ${counted(this.rows.length, 'function')}, ${parts.join(', ')}`;
    const hidden = rows.length - shown.length;
    const { omitted_rows: omitted } = this.summary;
    this.more.replaceChildren(
      hidden > 0 ? el('button', { type: 'button', click: () => this.showAll() }, `Show ${grouped(hidden)} more`) : '',
      omitted > 0 ? ` This page leaves out ${counted(omitted, 'function')} with less self time.` : '');
  }

  showAll() {
    this.all = true;
    this.draw();
  }

  /** @param {Row} row */
  rowElements(row) {
    const isOpen = this.open.has(row);
    const button = el('button', {
      class: 'open', type: 'button', 'aria-expanded': String(isOpen), click: () => this.toggle(row, button),
      keydown: (event) => this.move(event, button),
    }, nameElement(row.name, this.search));
    const cells = this.columns.slice(1).map((column) => this.cell(row, column));
    const element = el('tr', {}, el('th', { scope: 'row' }, button), ...cells);
    return isOpen ? [element, this.detailElement(row)] : [element];
  }

  /** @param {Row} row @param {Column} column */
  cell(row, column) {
    const value = column.value(row);
    // A time that the clock has, and that is not known.
    const missing = column.key && row[column.clock] ? '–' : '';
    const cell = el('td', { class: column.class }, value === null ? missing : column.format(value));
    if (column.share && value !== null) {
      cell.classList.add('share', /** @type {string} */ (column.clock));
      cell.style.setProperty('--share', `${Math.min(Number(value), 100)}%`);
    }
    return cell;
  }

  /** @param {Row} row */
  detailElement(row) {
    const content = details(row, this.summary, (name) => this.show(name));
    return el('tr', { class: 'detail' }, el('td', { colspan: this.columns.length - this.hidden.size }, content));
  }

  /** Opens or closes a row. @param {Row} row @param {HTMLElement} button */
  toggle(row, button) {
    const element = /** @type {HTMLElement} */ (button.closest('tr'));
    if (this.open.delete(row)) {
      element.nextElementSibling?.remove();
    } else {
      this.open.add(row);
      element.after(this.detailElement(row));
    }
    set(button, { 'aria-expanded': String(this.open.has(row)) });
  }

  /** Moves between names with the arrow keys. @param {KeyboardEvent} event @param {HTMLElement} button */
  move(event, button) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const buttons = [...this.body.querySelectorAll('.open')];
    const next = /** @type {HTMLElement|undefined} */ (buttons[buttons.indexOf(button) + step]);
    next?.focus();
    event.preventDefault();
  }

  /** Returns the row of a name, as it is or as it is shown. @param {string} name */
  rowOf(name) {
    this.byName ??= new Map(this.rows.flatMap((row) => [[printable(row.name), row], [row.name, row]]));
    return this.byName.get(name);
  }

  /** Opens the row of a function and goes there, whatever the table is restricted to. @param {string} name */
  show(name) {
    const row = this.rowOf(name);
    if (!row) return;
    this.open.add(row);
    if (!this.selected().includes(row)) this.clear();
    this.all ||= this.selected().indexOf(row) >= ROWS_AT_FIRST;
    this.draw();
    const button = /** @type {HTMLElement} */ (this.body.querySelectorAll('.open')[this.selected().indexOf(row)]);
    button.focus();
    button.scrollIntoView({ block: 'center' });
  }

  /** Shows all functions again. */
  clear() {
    this.search = null;
    this.restriction = '';
    this.problem.textContent = '';
    for (const input of this.body.closest('section')?.querySelectorAll('.bar input') ?? []) {
      /** @type {HTMLInputElement} */ (input).value = '';
      set(input, { 'aria-invalid': null });
    }
  }
}
