// The icicle: callers above their callees, each as wide as its share of the time.

const ICICLE_ROW = 22;
/** The part of the window that the rows may take, and the fewest rows. */
const ICICLE_PART = 0.7;
const FEWEST_ROWS = 8;
/** How many steps of the path are shown, beside the first. */
const TRAIL = 6;

class Icicle {
  /** @param {TreeData} data */
  constructor(data) {
    this.callees = new CallTree(data);
    this.tree = this.callees;
    this.clock = this.tree.total('cuda') > 0 ? 'cuda' : 'cpu';
    this.zoomed = -1;
    this.selected = -1;
    /** @type {RegExp|null} */
    this.search = null;
    /** @type {Box[]} */
    this.boxes = [];
    this.canvas = /** @type {HTMLCanvasElement} */ (el('canvas', {
      class: 'icicle', tabindex: 0, role: 'application', 'aria-label': 'Call tree',
      'aria-describedby': 'icicle-keys icicle-about',
      click: (event) => this.click(event), pointermove: (event) => this.hover(event),
      pointerleave: () => this.describe(this.selected), keydown: (event) => this.key(event),
      focus: () => this.select(this.selected < 0 ? this.first() : this.selected), blur: () => this.surface.request(),
    }));
    this.about = el('p', { class: 'about-box', id: 'icicle-about', role: 'status' });
    this.trail = el('nav', { class: 'trail', 'aria-label': 'Zoomed path' });
    this.found = el('span', { class: 'status', role: 'status' });
    this.view = addView('tree', 'Call tree', this.controls(), this.trail, this.canvas, this.about,
      el('p', { class: 'note', id: 'icicle-keys' },
        'Click, or Enter: zoom. Backspace: zoom out. Arrow keys: move between calls. A line below a call: there is more '
        + 'than fits; zoom to see it.'),
      this.isFlat() ? el('p', { class: 'note' },
        'The callers are not known. PROFILER_CALLERS=1 or a window of a session records them.') : null);
    this.surface = new Surface(this.canvas, () => this.draw());
    this.zoom(-1);
  }

  controls() {
    const clocks = CLOCKS.filter(([clock]) => this.tree.total(clock) > 0);
    const buttons = clocks.map(([clock, title]) => button(`${title} time`, () => {
      this.clock = clock;
      buttons.forEach((each, index) => set(each, { 'aria-pressed': String(clocks[index][0] === clock) }));
      this.zoom(-1);
    }, { 'aria-pressed': String(clock === this.clock), class: clock }));
    const turn = this.isFlat() ? null : button('Upside down', () => {
      const isTurned = this.tree === this.callees;
      this.callers ??= new CallTree(upsideDown(this.callees));
      this.tree = isTurned ? this.callers : this.callees;
      set(/** @type {HTMLElement} */ (turn), { 'aria-pressed': String(isTurned) });
      this.selected = -1;
      this.sayFound();
      this.zoom(-1);
    }, { 'aria-pressed': 'false', title: 'Functions by their own time, their callers below them' });
    const search = el('input', { type: 'search', placeholder: 'Search calls', 'aria-label': 'Search calls', input: () => {
      this.search = searchFor(/** @type {any} */ (search).value.trim());
      this.sayFound();
      this.surface.request();
    } });
    return el('div', { class: 'bar' }, ...buttons, turn, search, this.found);
  }

  /** Returns true if no call has a caller. */
  isFlat() {
    return this.tree.parent.every((parent) => parent < 0);
  }

  /** Returns the node that the keyboard begins with. */
  first() {
    return this.zoomed >= 0 ? this.zoomed : this.tree.callees(-1, this.clock)[0] ?? -1;
  }

  /** Gives a node the whole width; -1 shows all. @param {number} node */
  zoom(node) {
    this.zoomed = node;
    if (node >= 0 && !this.isBelow(this.selected, node)) this.selected = node;
    this.canvas.dataset.zoomed = node < 0 ? '' : this.tree.nameOf(node);
    const path = node < 0 ? [] : this.tree.path(node);
    const left = Math.max(path.length - TRAIL, 0);
    const step = (to, label) => button(label, () => this.zoom(to), { 'aria-current': to === node ? 'true' : null });
    this.trail.replaceChildren(step(-1, 'All'), ...(left > 0 ? [step(path[left - 1], `… ${counted(left, 'caller')} …`)] : []),
      ...path.slice(left).map((to) => step(to, this.tree.nameOf(to).slice(lastSegment(this.tree.nameOf(to))))));
    this.arrange();
    this.describe(this.selected);
    this.surface.request();
  }

  /** How many rows stay on one screen. */
  get rows() {
    return Math.max(Math.floor((innerHeight * ICICLE_PART) / ICICLE_ROW), FEWEST_ROWS);
  }

  /** @param {number} node @param {number} caller */
  isBelow(node, caller) {
    return node >= 0 && this.tree.path(node).includes(caller);
  }

  arrange() {
    const width = this.canvas.clientWidth || 1000;
    this.boxes = layout(this.tree, this.clock, this.zoomed, width, this.rows);
    const rows = this.boxes.reduce((rows, box) => Math.max(rows, box.row + 1), 1);
    this.canvas.style.height = `${rows * ICICLE_ROW}px`;
  }

  draw() {
    const { context, colors } = this.surface;
    this.arrange();
    const tints = colors[this.clock];
    for (const box of this.boxes) {
      const name = this.tree.nameOf(box.node);
      const isFound = this.search && name.search(this.search) >= 0;
      context.globalAlpha = this.search && !isFound ? 0.45 : 1;
      context.fillStyle = isFound ? colors.mark : tints[tintOf(name)];
      const y = box.row * ICICLE_ROW;
      context.fillRect(box.x, y, Math.max(box.width - 1, 0.5), ICICLE_ROW - 1);
      context.fillStyle = colors.text;
      this.surface.write(name, box.x + 5, y + ICICLE_ROW / 2, box.width - 9);
      if (box.hidesMore) context.fillRect(box.x, y + ICICLE_ROW - 3, Math.max(box.width - 1, 0.5), 2);
      if (box.node === this.selected && document.activeElement === this.canvas) {
        context.strokeStyle = colors.focus;
        context.lineWidth = 2;
        context.strokeRect(box.x + 1, y + 1, Math.max(box.width - 3, 1), ICICLE_ROW - 3);
      }
    }
    context.globalAlpha = 1;
    this.canvas.dataset.boxes = String(this.boxes.length);
  }

  /** Returns the node at a place of the canvas. @param {MouseEvent} event */
  at({ offsetX, offsetY }) {
    const row = Math.floor(offsetY / ICICLE_ROW);
    const box = this.boxes.find((box) => box.row === row && offsetX >= box.x && offsetX < box.x + box.width);
    return box ? box.node : -1;
  }

  /** @param {MouseEvent} event */
  click(event) {
    const node = this.at(event);
    if (node < 0) return;
    this.selected = node;
    this.zoom(node === this.zoomed ? this.tree.parent[node] : node);
  }

  /** @param {PointerEvent} event */
  hover(event) {
    const node = this.at(event);
    this.describe(node < 0 ? this.selected : node);
  }

  /** @param {number} node */
  select(node) {
    this.selected = node;
    // What has no room is zoomed to.
    if (node >= 0 && !this.boxes.some((box) => box.node === node)) this.zoom(this.tree.parent[node]);
    this.describe(node);
    this.surface.request();
  }

  /** Says all about a node, also to readers of screens. @param {number} node */
  describe(node) {
    if (node < 0) {
      this.about.textContent = `${time(this.tree.total(this.clock))} of ${this.clock.toUpperCase()} self time, `
        + counted(this.tree.size, 'path');
      return;
    }
    const clock = this.clock;
    const sum = this.tree.sums[clock][node];
    if (this.tree === this.callers) {
      const top = this.tree.path(node)[0];
      this.about.replaceChildren(nameElement(this.tree.nameOf(node)),
        ` ${time(sum)} (${share(sum / this.tree.total(clock))}) of own time${node === top ? '' : ' in '}`,
        ...(node === top ? [] : [nameElement(this.tree.nameOf(top)), ' on this path']), `, ${counted(this.tree.calls[node], 'call')}`
        + (this.tree.cut.has(node) ? '; further callers are not shown' : ''));
      return;
    }
    this.about.replaceChildren(nameElement(this.tree.nameOf(node)),
      ` ${time(sum)} (${share(sum / this.tree.total(clock))}) with its callees, ${time(this.tree.own[clock][node])} `
      + `without, ${counted(this.tree.calls[node], 'call')}`
      + (this.tree.cut.has(node) ? '; further callees are below “(other callers)”' : ''));
  }

  /** Says how much of the time is in the calls that were searched for, each instant once. */
  sayFound() {
    if (!this.search) {
      this.found.textContent = '';
      return;
    }
    const { search, tree, clock } = this;
    const matches = tree.names.map((name) => name.search(search) >= 0);
    let found = 0;
    let sum = 0;
    const inside = new Uint8Array(tree.size);
    for (let node = 0; node < tree.size; node += 1) {
      const isMatch = matches[tree.name[node]];
      const isInside = tree.parent[node] >= 0 && inside[tree.parent[node]] === 1;
      if (isMatch) found += 1;
      if (isMatch && !isInside) sum += tree.sums[clock][node];
      inside[node] = isMatch || isInside ? 1 : 0;
    }
    this.found.textContent = `${counted(found, 'path')}, ${share(sum / (tree.total(clock) || 1))} of the time`;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const actions = {
      ArrowDown: () => this.select(this.tree.callees(this.selected, this.clock)[0] ?? this.selected),
      ArrowUp: () => this.select(this.tree.parent[this.selected] >= 0 ? this.tree.parent[this.selected] : this.selected),
      ArrowRight: () => this.select(this.sibling(1)),
      ArrowLeft: () => this.select(this.sibling(-1)),
      Enter: () => this.zoom(this.selected),
      Backspace: () => this.zoom(this.zoomed < 0 ? -1 : this.tree.parent[this.zoomed]),
      Escape: () => this.zoom(-1),
    };
    const action = actions[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    action();
    event.preventDefault();
  }

  /** Returns the node beside the selected one, if there is one. @param {number} step */
  sibling(step) {
    const siblings = this.tree.callees(this.tree.parent[this.selected] ?? -1, this.clock);
    return siblings[siblings.indexOf(this.selected) + step] ?? this.selected;
  }
}
