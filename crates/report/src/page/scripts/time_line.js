// The time line of a window: threads above streams, with arrows from launches to their work.

const LANE = 19;
const TRACK_GAP = 9;
const AXIS = 40;
/** The most arrows that are drawn; of more, only those of the selected slice. */
const MOST_ARROWS = 400;
/** How much one key or button zooms, and what part of the span one pans. */
const ZOOM = 1.6;
const PAN = 0.2;

class TimeLine {
  /** @param {any} data */
  constructor(data) {
    this.window = new Window(data);
    this.from = 0;
    this.to = this.window.duration;
    this.selected = -1;
    /** @type {RegExp|null} */
    this.search = null;
    this.canvas = /** @type {HTMLCanvasElement} */ (el('canvas', {
      class: 'time-line', tabindex: 0, role: 'application', 'aria-label': 'Time line',
      'aria-describedby': 'time-keys time-about',
      pointerdown: (event) => this.press(event), pointermove: (event) => this.drag(event),
      pointerup: (event) => this.release(event), dblclick: () => this.zoomToSelected(),
      keydown: (event) => this.key(event), focus: () => this.surface.request(), blur: () => this.surface.request(),
    }));
    this.canvas.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    this.about = el('p', { class: 'about-box', id: 'time-about', role: 'status' });
    this.found = el('span', { class: 'status', role: 'status' });
    this.space = el('div', { class: 'space' }, this.canvas);
    this.box = el('div', { class: 'tracks', scroll: () => this.surface.request() }, this.space);
    this.surface = new Surface(this.canvas, () => this.draw());
    this.top = this.arrange();
    this.space.style.height = `${this.height}px`;
    this.view = addView('time', 'Time line', this.controls(), this.box, this.about, this.keys(), this.omitted());
    this.describe(-1);
  }

  controls() {
    const search = el('input', { type: 'search', placeholder: 'Search slices', 'aria-label': 'Search slices',
      input: () => {
        this.search = searchFor(/** @type {any} */ (search).value.trim());
        this.sayFound();
        this.surface.request();
      },
      keydown: (event) => {
        if (event.key === 'Enter') this.selectNextFound();
      } });
    return el('div', { class: 'bar' },
      button('+', () => this.zoomBy(1 / ZOOM), { 'aria-label': 'Zoom in' }),
      button('−', () => this.zoomBy(ZOOM), { 'aria-label': 'Zoom out' }),
      button('Whole window', () => this.show(0, this.window.duration)),
      search, this.found);
  }

  keys() {
    return el('p', { class: 'note', id: 'time-keys' },
      'Drag, or A and D: move. Ctrl and the wheel, or W and S: zoom. Arrow keys: move between slices. '
      + 'Enter: zoom to the slice. L: go to its launch, or to the work that it launched. 0: the whole window.');
  }

  omitted() {
    const { omitted, omittedBelow } = this.window;
    return omitted === 0 ? null : el('p', { class: 'note' },
      `Left out of this page: ${counted(omitted, 'slice')} shorter than ${time(omittedBelow)}. `
      + 'A trace for Perfetto has them all.');
  }

  /** Returns where each lane begins. */
  arrange() {
    let y = AXIS;
    const tops = this.window.lanes.map(({ track }, index) => {
      const isFirst = index === 0 || this.window.lanes[index - 1].track !== track;
      if (isFirst) y += TRACK_GAP;
      y += LANE;
      return y - LANE;
    });
    this.height = y + TRACK_GAP;
    return tops;
  }

  /** The width of the names of tracks. */
  get labels() {
    return Math.min(150, Math.round(this.surface.width * 0.22));
  }

  /** The time that one pixel shows. */
  get pixel() {
    return (this.to - this.from) / Math.max(this.surface.width - this.labels, 1);
  }

  /** @param {number} ns */
  x(ns) {
    return this.labels + (ns - this.from) / this.pixel;
  }

  /** @param {number} x */
  timeAt(x) {
    return this.from + (x - this.labels) * this.pixel;
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

  draw() {
    const { context, colors } = this.surface;
    this.scrolled = this.box.scrollTop;
    let drawn = 0;
    this.drawSteps();
    context.save();
    context.beginPath();
    context.rect(this.labels, AXIS, this.surface.width - this.labels, this.surface.height - AXIS);
    context.clip();
    this.drawKernelGaps();
    this.window.lanes.forEach((lane, index) => {
      const y = this.top[index] - this.scrolled;
      if (y + LANE < AXIS || y > this.surface.height) return;
      this.window.visible(lane, this.from, this.to, this.pixel, (slice) => {
        drawn += 1;
        this.drawSlice(slice, y);
      });
    });
    const arrows = this.drawArrows();
    context.restore();
    this.drawLabels();
    this.drawAxis();
    context.strokeStyle = colors.line;
    Object.assign(this.canvas.dataset, {
      drawn: String(drawn), arrows: String(arrows), from: String(Math.round(this.from)), to: String(Math.round(this.to)),
    });
  }

  /** @param {number} slice @param {number} y */
  drawSlice(slice, y) {
    const { context, colors } = this.surface;
    const name = this.window.nameOf(slice);
    const x = Math.max(this.x(this.window.start[slice]), this.labels - 4);
    const end = Math.min(this.x(this.window.end[slice]), this.surface.width + 4);
    const width = end - x;
    const isFound = this.search && name.search(this.search) >= 0;
    context.globalAlpha = this.search && !isFound ? 0.4 : 1;
    context.fillStyle = isFound ? colors.mark : (this.window.isOnGpu(slice) ? colors.cuda : colors.cpu)[tintOf(name)];
    context.fillRect(x, y, Math.max(width > 4 ? width - 0.75 : width, 1), LANE - 2);
    if (width > 24) {
      context.fillStyle = colors.text;
      this.surface.write(name, x + 4, y + LANE / 2 - 0.5, width - 8);
    }
    if (slice === this.selected) {
      context.globalAlpha = 1;
      context.strokeStyle = colors.focus;
      context.lineWidth = 2;
      context.strokeRect(x + 1, y + 1, Math.max(width - 2, 1), LANE - 4);
    }
    context.globalAlpha = 1;
  }

  /** Draws arrows from launches to the work that is visible. Returns their number. */
  drawArrows() {
    /** @type {Array<[number, number]>} */
    const arrows = [];
    for (const lane of this.window.lanes) {
      if (this.window.tracks[lane.track].kind !== 'stream') continue;
      this.window.visible(lane, this.from, this.to, this.pixel, (slice) => {
        if (this.window.launch[slice] >= 0) arrows.push([this.window.launch[slice], slice]);
      });
    }
    const ofSelected = ([launch, work]) => launch === this.selected || work === this.selected;
    const drawn = arrows.length > MOST_ARROWS ? arrows.filter(ofSelected).slice(0, MOST_ARROWS) : arrows;
    for (const arrow of drawn) this.drawArrow(...arrow, ofSelected(arrow));
    return drawn.length;
  }

  /** @param {number} launch @param {number} work @param {boolean} isSelected */
  drawArrow(launch, work, isSelected) {
    const { context, colors } = this.surface;
    const y = (slice) => this.top[this.window.laneOf(slice)] - (this.scrolled ?? 0);
    const [fromX, fromY] = [this.x(this.window.start[launch]), y(launch) + LANE - 2];
    const [toX, toY] = [this.x(this.window.start[work]), y(work)];
    const bend = Math.max(Math.abs(toY - fromY) / 2, 12);
    context.strokeStyle = isSelected ? colors.focus : colors.dim;
    context.fillStyle = context.strokeStyle;
    context.globalAlpha = isSelected ? 1 : 0.55;
    context.lineWidth = isSelected ? 1.8 : 1;
    context.beginPath();
    context.moveTo(fromX, fromY);
    context.bezierCurveTo(fromX, fromY + bend, toX, toY - bend, toX, toY - 4);
    context.stroke();
    context.beginPath();
    context.moveTo(toX, toY);
    context.lineTo(toX - 3, toY - 5);
    context.lineTo(toX + 3, toY - 5);
    context.fill();
    context.globalAlpha = 1;
  }

  drawSteps() {
    const { context, colors, height } = this.surface;
    let labelled = -Infinity;
    this.window.steps.forEach(([number, start, end], index) => {
      if (end < this.from || start > this.to) return;
      const [x, right] = [Math.max(this.x(start), this.labels), this.x(end)];
      if (right - x < 3) return;
      context.fillStyle = colors.raised;
      if (index % 2 === 0) context.fillRect(x, 22, right - x, height);
      context.fillStyle = colors.dim;
      if (x - labelled > 10) {
        const label = `step ${number}`;
        this.surface.write(label, x + 4, 31, right - x - 6);
        labelled = x + Math.min(this.surface.measure(label), right - x);
      }
    });
  }

  /** Hatches the rows of streams where kernels were not recorded. */
  drawKernelGaps() {
    const { context, colors } = this.surface;
    const text = 'kernels not recorded';
    for (const [start, end, process] of this.window.kernelGaps) {
      const [x, right] = [Math.max(this.x(start), this.labels), Math.min(this.x(end), this.surface.width)];
      if (right - x < 1) continue;
      this.window.lanes.forEach(({ track, depth }, index) => {
        const of = this.window.tracks[track];
        if (of.kind !== 'stream' || (process !== null && of.process !== process)) return;
        const y = this.top[index] - this.scrolled;
        context.save();
        context.beginPath();
        context.rect(x, y, right - x, LANE - 2);
        context.clip();
        context.strokeStyle = colors.dim;
        context.globalAlpha = 0.5;
        context.beginPath();
        for (let at = x - LANE; at < right; at += 6) {
          context.moveTo(at, y + LANE);
          context.lineTo(at + LANE, y);
        }
        context.stroke();
        context.restore();
        if (depth > 0) return;
        const width = this.surface.measure(text) + 8;
        if (width > right - x) return;
        context.fillStyle = colors.page;
        context.fillRect(x, y, width, LANE - 2);
        context.fillStyle = colors.dim;
        this.surface.write(text, x + 4, y + LANE / 2 - 0.5, width - 8);
      });
    }
  }

  drawLabels() {
    const { context, colors, width, height } = this.surface;
    context.fillStyle = colors.page;
    context.fillRect(0, AXIS, this.labels - 1, height);
    this.window.lanes.forEach(({ track, depth }, index) => {
      const y = this.top[index] - (this.scrolled ?? 0);
      if (depth > 0 || y < AXIS - LANE || y > height) return;
      const { name, kind } = this.window.tracks[track];
      context.fillStyle = kind === 'stream' ? colors.cudaLine : colors.cpuLine;
      context.fillText(this.surface.shortened(printable(name), this.labels - 12), 4, y + LANE / 2);
      context.fillStyle = colors.line;
      context.fillRect(0, y - TRACK_GAP / 2, width, 1);
    });
  }

  drawAxis() {
    const { context, colors, width } = this.surface;
    context.fillStyle = colors.page;
    context.fillRect(0, 0, width, 21);
    context.fillRect(0, 0, this.labels - 1, AXIS);
    const step = niceStep(this.pixel * 110);
    for (let ns = Math.ceil(this.from / step) * step; ns <= this.to; ns += step) {
      const x = this.x(ns);
      context.fillStyle = colors.line;
      context.fillRect(x, 16, 1, 6);
      context.fillStyle = colors.dim;
      context.textAlign = x > width - 30 ? 'right' : 'center';
      if (x > this.labels + 16 || ns === 0) context.fillText(ns === 0 ? '0' : axisTime(ns, step), Math.max(x, 8), 8);
      context.textAlign = 'left';
    }
    context.fillStyle = colors.line;
    context.fillRect(this.labels, 21, width, 1);
    context.fillRect(this.labels - 1, 21, 1, this.surface.height);
  }

  /** Returns the slice at a place of the canvas; -1 for none. @param {MouseEvent} event */
  at({ offsetX, offsetY }) {
    const y = offsetY + this.box.scrollTop;
    const index = this.top.findIndex((top) => y >= top && y < top + LANE);
    if (index < 0 || offsetX < this.labels || offsetY < AXIS) return -1;
    const lane = this.window.lanes[index];
    const slice = lane.slices[this.window.firstAfter(lane, this.timeAt(offsetX - 1))];
    return slice !== undefined && this.window.start[slice] <= this.timeAt(offsetX + 1) ? slice : -1;
  }

  /** @param {PointerEvent} event */
  press(event) {
    this.pressed = { x: event.offsetX, y: event.offsetY, from: this.from, span: this.to - this.from, moved: false };
    this.canvas.setPointerCapture(event.pointerId);
  }

  /** @param {PointerEvent} event */
  drag(event) {
    if (!this.pressed) {
      const slice = this.at(event);
      this.describe(slice < 0 ? this.selected : slice);
      return;
    }
    const shift = event.offsetX - this.pressed.x;
    this.pressed.moved ||= Math.abs(shift) > 3;
    if (this.pressed.moved) this.show(this.pressed.from - shift * this.pixel, this.pressed.from - shift * this.pixel + this.pressed.span);
  }

  /** @param {PointerEvent} event */
  release(event) {
    const isClick = this.pressed && !this.pressed.moved;
    this.pressed = undefined;
    if (isClick) this.select(this.at(event));
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

  /** @param {number} slice */
  select(slice) {
    this.selected = slice;
    this.describe(slice);
    this.surface.request();
  }

  /** Selects a slice and brings it into view. @param {number} slice */
  reveal(slice) {
    if (slice === undefined || slice < 0) return;
    const { start, end } = this.window;
    const span = this.to - this.from;
    if (end[slice] < this.from || start[slice] > this.to) this.show(start[slice] - span / 3, start[slice] + (2 * span) / 3);
    const y = this.top[this.window.laneOf(slice)];
    if (y - AXIS < this.box.scrollTop) this.box.scrollTop = y - AXIS - TRACK_GAP;
    if (y + LANE > this.box.scrollTop + this.surface.height) this.box.scrollTop = y + LANE - this.surface.height;
    this.select(slice);
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

  sayFound() {
    const { search, window } = this;
    if (!search) {
      this.found.textContent = '';
      return;
    }
    const matches = window.names.map((name) => name.search(search) >= 0);
    const found = window.name.reduce((count, name) => count + Number(matches[name]), 0);
    this.found.textContent = `${counted(found, 'slice')}; Enter goes to the next`;
  }

  /** Selects the next slice that was searched for, in the order of starts on each track. */
  selectNextFound() {
    const { window, search } = this;
    for (let step = 1; search && step <= window.count; step += 1) {
      const slice = (this.selected + step + window.count) % window.count;
      if (window.nameOf(slice).search(search) >= 0) {
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
    const place = this.selected < 0 ? window.firstAfter(lane, this.from) - step : lane.slices.indexOf(this.selected);
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
      l: () => this.followArrow(), Enter: () => this.zoomToSelected(), Escape: () => this.select(-1),
      ArrowRight: () => this.selectBeside(1), ArrowLeft: () => this.selectBeside(-1),
      ArrowDown: () => this.selectLane(1), ArrowUp: () => this.selectLane(-1),
    };
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    action();
    event.preventDefault();
  }
}

/** Steps of an axis that are whole in minutes, hours and days, in seconds. */
const LONG_STEPS = [30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

/** Returns the next of 1, 2, 5, 10, … that is not shorter; above 20 seconds, a round number of a larger unit. @param {number} ns */
function niceStep(ns) {
  const long = LONG_STEPS.find((seconds) => seconds * 1e9 >= ns);
  if (ns > 20e9 && long) return long * 1e9;
  const unit = ns > 20e9 ? 86400e9 : 1;
  const power = unit * 10 ** Math.floor(Math.log10(Math.max(ns / unit, 1)));
  const factor = [1, 2, 5, 10].find((factor) => factor * power >= ns) ?? 10;
  return factor * power;
}

/**
 * Formats a time of an axis with as many digits as its steps need. Short steps are counted in seconds however late they are.
 * @param {number} ns
 * @param {number} step
 */
function axisTime(ns, step) {
  const units = TIME_UNITS.filter(([size]) => size <= 1e9 || step > 20e9);
  const [size, , unit] = units.find(([, from]) => ns > 0 && ns >= from) ?? [1, 0, 'ns'];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  return `${(ns / size).toFixed(Math.min(digits, 9))} ${unit}`;
}
