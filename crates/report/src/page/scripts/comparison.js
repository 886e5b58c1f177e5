// The table of two runs: sorted by any of its columns.

const PAIR_TEXTS = [String, grouped, grouped, time, time, digits, time, time, digits];

class Comparison {
  /**
   * @param {HTMLElement} view the section that has the table without script
   * @param {any[][]} pairs name; calls before and now; CPU means before and now; CUDA means before and now
   */
  constructor(view, pairs) {
    const ratio = (before, now) => (before > 0 && now !== null ? now / before : null);
    this.rows = pairs.map(([name, callsBefore, callsNow, cpuBefore, cpuNow, cudaBefore, cudaNow]) => [
      name, callsBefore, callsNow, cpuBefore, cpuNow, ratio(cpuBefore, cpuNow),
      cudaBefore, cudaNow, ratio(cudaBefore, cudaNow),
    ]);
    this.sort = -1;
    this.sign = 1;
    this.body = /** @type {HTMLElement} */ (view.querySelector('tbody'));
    this.headers = [...view.querySelectorAll('thead th:not([scope=colgroup])')];
    this.headers.forEach((header, index) => {
      const title = header.textContent ?? '';
      header.replaceChildren(el('button', { type: 'button', click: () => this.sortBy(index) }, title));
    });
  }

  /** @param {number} index */
  sortBy(index) {
    this.sign = this.sort === index ? -this.sign : 1;
    this.sort = index;
    const sorted = [...this.rows].sort((left, right) => order(left[index], right[index], this.sign));
    this.body.replaceChildren(...sorted.map((row) => this.rowElement(row)));
    const direction = (index === 0 ? -1 : 1) * this.sign;
    this.headers.forEach((header, at) => {
      set(header, { 'aria-sort': at === index ? (direction > 0 ? 'descending' : 'ascending') : null });
    });
  }

  /** @param {any[]} row */
  rowElement([name, ...values]) {
    const shown = values.slice(0, this.headers.length - 1);
    const cells = shown.map((value, index) => el('td', {}, value === null ? '' : PAIR_TEXTS[index + 1](value)));
    return el('tr', {}, el('th', { scope: 'row' }, nameElement(name)), ...cells);
  }
}
