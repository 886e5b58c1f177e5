// Which columns of a table are shown: as many as there is room for.

/**
 * Returns the columns for which a table has no room: those of high ranks first, of columns with one rank the last one.
 * @param {HTMLElement} table in an element that scrolls
 * @param {HTMLElement[]} headers all shown
 * @param {number[]} ranks zero for a column that always stays
 * @param {number} kept another column that stays
 * @returns {Set<number>}
 */
function columnsWithoutRoom(table, headers, ranks, kept) {
  const widths = headers.map((header) => header.offsetWidth);
  let room = (table.parentElement?.clientWidth ?? 0) - table.offsetWidth;
  const order = [...ranks.keys()].filter((index) => ranks[index] > 0 && index !== kept)
    .sort((left, right) => ranks[right] - ranks[left] || right - left);
  const hidden = new Set();
  for (const index of order) {
    if (room >= 0) break;
    hidden.add(index);
    room += widths[index];
  }
  return hidden;
}

/**
 * Shows all columns of a table but some.
 * @param {HTMLTableSectionElement} body
 * @param {HTMLElement[]} headers
 * @param {HTMLTableCellElement[]} groups headers of several columns
 * @param {Array<string|undefined>} groupOf the class of the group of each column
 * @param {Set<number>} hidden
 */
function hideColumns(body, headers, groups, groupOf, hidden) {
  headers.forEach((header, index) => { header.hidden = hidden.has(index); });
  for (const group of groups) {
    const shown = groupOf.filter((of, index) => of === group.className && !hidden.has(index)).length;
    group.hidden = shown === 0;
    group.colSpan = Math.max(shown, 1);
  }
  for (const row of body.rows) {
    if (row.className === 'detail') row.cells[0].colSpan = headers.length - hidden.size;
    else [...row.cells].forEach((cell, index) => { cell.hidden = hidden.has(index); });
  }
}

/** Calls a function when an element has another width. @param {Element} element @param {() => void} change */
function onWidth(element, change) {
  let width = 0;
  new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width !== width) change();
    width = contentRect.width;
  }).observe(element);
}
