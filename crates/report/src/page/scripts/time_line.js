// The time line of a window: threads above streams, with arrows from launches to their work.

/** How much one key or button zooms, and what part of the span one pans. */
const ZOOM = 1.6;
const PAN = 0.2;

class TimeLine extends TimeLineDrawing {
  /**
   * @param {any} data
   * @param {(name: string) => boolean} hasRow
   * @param {(name: string) => void} showRow
   */
  constructor(data, hasRow, showRow) {
    super(data);
    Object.assign(this, { hasRow, showRow });
    this.canvas = /** @type {HTMLCanvasElement} */ (el('canvas', {
      class: 'time-line', tabindex: 0, role: 'application', 'aria-label': 'Time line',
      'aria-describedby': 'time-keys time-about',
      pointerdown: (event) => this.press(event), pointermove: (event) => this.drag(event),
      pointerup: (event) => this.release(event), pointerleave: () => this.hover(-1), dblclick: () => this.zoomToSelected(),
      keydown: (event) => this.key(event), focus: () => this.surface.request(), blur: () => this.surface.request(),
    }));
    this.canvas.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    this.about = el('p', { class: 'about-box', id: 'time-about', role: 'status' });
    this.row = el('p', { class: 'to-row' });
    this.deep = el('p', { class: 'note' });
    this.sums = el('div', { class: 'range' });
    this.tip = el('div', { class: 'tip', 'aria-hidden': 'true', hidden: true });
    this.found = el('span', { class: 'status', role: 'status' });
    this.space = el('div', { class: 'space' }, this.canvas);
    this.box = el('div', { class: 'tracks', scroll: () => this.surface.request() }, this.space);
    this.surface = new Surface(this.canvas, () => this.draw());
    this.space.style.height = `${this.height}px`;
    this.view = addView('time', 'Time line', this.controls(), el('div', { class: 'with-tip' }, this.box, this.tip), this.deep, this.about,
      this.row, this.sums, this.keys(), this.omitted());
    this.sayTooDeep();
    this.describe(-1);
  }

  controls() {
    const search = el('input', { type: 'search', placeholder: 'Search slices', 'aria-label': 'Search slices',
      input: () => {
        this.search = searchFor(/** @type {any} */ (search).value.trim());
        this.matches = this.window.names.map((name) => this.search !== null && name.search(this.search) >= 0);
        this.sayFound();
        this.surface.request();
      },
      keydown: (event) => {
        if (event.key === 'Enter') this.selectNextFound();
      } });
    this.ranging = button('Range', () => {
      const isOn = this.ranging.getAttribute('aria-pressed') !== 'true';
      set(this.ranging, { 'aria-pressed': String(isOn) });
    }, { 'aria-pressed': 'false', title: 'Dragging selects a range, and its sums are shown' });
    return el('div', { class: 'bar' },
      button('+', () => this.zoomBy(1 / ZOOM), { 'aria-label': 'Zoom in' }),
      button('−', () => this.zoomBy(ZOOM), { 'aria-label': 'Zoom out' }),
      button('Whole window', () => this.show(0, this.window.duration)), this.ranging,
      search, this.found);
  }

  keys() {
    return el('p', { class: 'note', id: 'time-keys' },
      'Drag, or A and D: move. Ctrl and the wheel, or W and S: zoom. Shift and drag: the sums of a range; R: of all that is '
      + 'in view. Arrow keys: move between slices. Enter: zoom to the slice. L: go to its launch, or to the work that it '
      + 'launched. T: go to its row in the table. 0: the whole window. Escape: select nothing.');
  }

  omitted() {
    const { omitted, omittedBelow } = this.window;
    return omitted === 0 ? null : el('p', { class: 'note' },
      `Left out of this page: ${counted(omitted, 'slice')} shorter than ${time(omittedBelow)}. `
      + 'A trace for Perfetto has them all.');
  }

  /** Says how many slices are not drawn since they are inside too many others, and offers more levels. */
  sayTooDeep() {
    const { tooDeep, levels } = this.window;
    this.deep.hidden = tooDeep === 0;
    this.deep.replaceChildren(`Not drawn: ${counted(tooDeep, 'slice')} inside ${grouped(levels)} or more others. `,
      levels < DEEPEST ? button(`Show ${grouped(DEEPEST)} levels`, () => this.showDeepest()) : '');
  }

  /** Draws as many levels as a track can have. */
  showDeepest() {
    this.window.order(DEEPEST);
    this.top = this.arrange();
    this.space.style.height = `${this.height}px`;
    this.sayTooDeep();
    this.surface.request();
  }

  /** Shows a span of the window. @param {number} from @param {number} to */
  show(from, to) {
    const { duration } = this.window;
    const span = Math.min(Math.max(to - from, 50), duration);
    this.from = Math.min(Math.max(from, 0), duration - span);
    this.to = this.from + span;
    this.surface.request();
  }

  /** Zooms around a time, by default the middle. @param {number} factor @param {number} [around] */
  zoomBy(factor, around = (this.from + this.to) / 2) {
    const to = around + (this.to - around) * factor;
    this.show(around - (around - this.from) * factor, to);
  }

  /** @param {number} part of the span that is shown */
  panBy(part) {
    const shift = (this.to - this.from) * part;
    this.show(this.from + shift, this.to + shift);
  }

  /** @param {PointerEvent} event */
  press(event) {
    const isRange = event.shiftKey || this.ranging.getAttribute('aria-pressed') === 'true';
    this.pressed = { x: event.offsetX, from: this.from, span: this.to - this.from, moved: false, isRange };
    this.canvas.setPointerCapture(event.pointerId);
    this.hover(-1);
  }

  /** @param {PointerEvent} event */
  drag(event) {
    if (!this.pressed) {
      this.hover(this.at(event), event);
      return;
    }
    const { x, from, span, isRange } = this.pressed;
    const shift = event.offsetX - x;
    this.pressed.moved ||= Math.abs(shift) > 3;
    if (!this.pressed.moved) return;
    if (isRange) this.selectRange(this.timeAt(x), this.timeAt(event.offsetX));
    else this.show(from - shift * this.pixel, from - shift * this.pixel + span);
  }

  /** @param {PointerEvent} event */
  release(event) {
    const { pressed } = this;
    this.pressed = undefined;
    if (pressed?.moved && pressed.isRange) this.showSums();
    else if (pressed && !pressed.moved) this.select(this.at(event));
  }

  /** Says what is below the pointer. @param {number} slice @param {MouseEvent} [event] */
  hover(slice, event) {
    this.tip.hidden = slice < 0;
    if (slice < 0 || !event) return;
    const name = this.window.nameOf(slice);
    this.tip.replaceChildren(el('strong', {}, name.length > 160 ? `${name.slice(0, 80)} … ${name.slice(-78)}` : name),
      ` ${time(this.window.end[slice] - this.window.start[slice])}${this.window.detailsOf(slice)}`);
    const [width, height] = [this.box.clientWidth, this.box.clientHeight];
    const x = Math.min(event.offsetX + 14, width - this.tip.offsetWidth - 4);
    const isBelow = event.offsetY + 22 + this.tip.offsetHeight < height;
    this.tip.style.left = `${Math.max(x, 0)}px`;
    this.tip.style.top = `${Math.max(isBelow ? event.offsetY + 22 : event.offsetY - this.tip.offsetHeight - 12, 0)}px`;
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      this.zoomBy(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 200))), this.timeAt(event.offsetX));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const shift = (event.deltaX || event.deltaY) * this.pixel;
      this.show(this.from + shift, this.to + shift);
    } else {
      return;
    }
    event.preventDefault();
  }

  /** Selects a range of time, whose sums are shown by `showSums`. @param {number} from @param {number} to */
  selectRange(from, to) {
    const inside = (ns) => Math.min(Math.max(Math.round(ns), 0), this.window.duration);
    const [start, end] = [inside(Math.min(from, to)), inside(Math.max(from, to))];
    this.range = end > start ? [start, end] : null;
    this.surface.request();
  }

  showSums() {
    const label = (name) => this.rowButton(this.window.names[name], nameElement(this.window.names[name]));
    this.sums.replaceChildren(...(this.range ? rangePanel(this.window, this.range, label) : []));
  }

  /** Returns a button that leads to the row of a function, or the content alone if there is none. @param {string} name
   * @param {Node} content */
  rowButton(name, content) {
    return this.hasRow(name) ? el('button', { type: 'button', class: 'name', click: () => this.showRow(name) }, content) : content;
  }

  /** @param {number} slice */
  select(slice) {
    this.selected = slice;
    this.arrows = this.window.arrowsOf(slice, MOST_ARROWS);
    this.describe(slice);
    this.surface.request();
  }

  /** Selects nothing. */
  clear() {
    this.selectRange(0, 0);
    this.showSums();
    this.select(-1);
  }

  /** Selects a slice and brings it into view. @param {number} slice */
  reveal(slice) {
    if (slice === undefined || slice < 0) return;
    if (this.window.isTooDeep(slice) && this.window.levels < DEEPEST) this.showDeepest();
    const { start, end } = this.window;
    const span = this.to - this.from;
    if (end[slice] < this.from || start[slice] > this.to) this.show(start[slice] - span / 3, start[slice] + (2 * span) / 3);
    const y = this.top[this.window.laneOf(slice)];
    if (y - AXIS < this.box.scrollTop) this.box.scrollTop = y - AXIS - TRACK_GAP;
    if (y + LANE > this.box.scrollTop + this.surface.height) this.box.scrollTop = y + LANE - this.surface.height;
    this.select(slice);
  }

  /** Goes to the longest call of a function. Returns false if there is none. @param {string} name */
  revealName(name) {
    const number = this.window.names.indexOf(printable(name));
    const slice = number < 0 ? -1 : this.window.longest(number);
    this.reveal(slice);
    return slice >= 0;
  }

  /** @param {string} name */
  hasName(name) {
    this.known ??= new Set(Array.from(new Set(this.window.name), (name) => this.window.names[name]));
    return this.known.has(printable(name));
  }

  zoomToSelected() {
    if (this.selected < 0) return;
    const [start, end] = [this.window.start[this.selected], this.window.end[this.selected]];
    const margin = Math.max((end - start) * 0.1, 20);
    this.show(start - margin, end + margin);
  }

  /** Says all about a slice, also to readers of screens. @param {number} slice */
  describe(slice) {
    const { window } = this;
    const name = this.rowOf(slice);
    this.row.replaceChildren(...(name === null ? [] : [this.rowButton(name, el('span', {}, 'In the table: ', nameElement(name)))]));
    if (slice < 0) {
      this.about.textContent = `${counted(window.count, 'slice')} on ${counted(window.tracks.length, 'track')} `
        + `in ${time(window.duration)}`;
      return;
    }
    const launch = window.launch[slice];
    const delay = launch < 0 ? '' : `, launched ${time(Math.max(window.start[slice] - window.start[launch], 0))} before`;
    this.about.replaceChildren(nameElement(window.nameOf(slice)),
      ` ${time(window.end[slice] - window.start[slice])} on ${printable(window.tracks[window.track[slice]].name)}, `
      + `from ${time(window.start[slice])}${delay}${window.detailsOf(slice)}`);
  }

  /** Returns the function in whose row a slice is counted: its own, or that of its launch. @param {number} slice */
  rowOf(slice) {
    for (let at = slice; at >= 0; at = this.window.launch[at]) {
      if (this.hasRow(this.window.nameOf(at))) return this.window.nameOf(at);
    }
    return null;
  }

  sayFound() {
    const { search, window, matches } = this;
    const found = search ? window.name.reduce((count, name) => count + Number(matches[name]), 0) : 0;
    this.found.textContent = search ? `${counted(found, 'slice')}; Enter goes to the next` : '';
  }

  /** Selects the next slice that was searched for, in the order of starts on each track. */
  selectNextFound() {
    const { window, search } = this;
    for (let step = 1; search && step <= window.count; step += 1) {
      const slice = (this.selected + step + window.count) % window.count;
      if (this.matches[window.name[slice]]) {
        this.reveal(slice);
        return;
      }
    }
  }

  /** Selects the slice beside the selected one in its lane, or the first one in view. @param {number} step */
  selectBeside(step) {
    const { window } = this;
    const lane = window.lanes[this.selected < 0 ? 0 : window.laneOf(this.selected)];
    if (!lane) return;
    const known = lane.slices.indexOf(this.selected);
    const time = this.selected < 0 ? this.from : window.start[this.selected];
    const place = known < 0 ? window.firstAfter(lane, time) - step : known;
    this.reveal(lane.slices[Math.min(Math.max(place + step, 0), lane.slices.length - 1)]);
  }

  /** Selects the slice above or below at the same time. @param {number} step */
  selectLane(step) {
    const { window } = this;
    if (this.selected < 0) {
      this.selectBeside(1);
      return;
    }
    const lane = window.lanes[window.laneOf(this.selected) + step];
    if (!lane) return;
    const start = window.start[this.selected];
    this.reveal(lane.slices[Math.min(window.firstAfter(lane, start), lane.slices.length - 1)]);
  }

  /** Goes from work to its launch, or from a launch to its first work. */
  followArrow() {
    if (this.selected < 0) return;
    const launch = this.window.launch[this.selected];
    this.reveal(launch >= 0 ? launch : this.window.launch.indexOf(this.selected));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const actions = {
      a: () => this.panBy(-PAN), d: () => this.panBy(PAN), w: () => this.zoomBy(1 / ZOOM), s: () => this.zoomBy(ZOOM),
      '+': () => this.zoomBy(1 / ZOOM), '-': () => this.zoomBy(ZOOM), 0: () => this.show(0, this.window.duration),
      r: () => {
        this.selectRange(this.from, this.to);
        this.showSums();
      },
      t: () => {
        const name = this.rowOf(this.selected);
        if (name !== null) this.showRow(name);
      },
      l: () => this.followArrow(), Enter: () => this.zoomToSelected(), Escape: () => this.clear(),
      ArrowRight: () => this.selectBeside(1), ArrowLeft: () => this.selectBeside(-1),
      ArrowDown: () => this.selectLane(1), ArrowUp: () => this.selectLane(-1),
    };
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    action();
    event.preventDefault();
  }
}
