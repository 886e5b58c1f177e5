// What the canvas of the time line shows: lanes, slices, arrows, steps, the axis.

const LANE = 19;
const TRACK_GAP = 9;
/** The distance of the tracks of one stream. */
const STREAM_GAP = 3;
const AXIS = 40;
/** The most arrows that are drawn at once; of more, only those of the selected slice. */
const MOST_ARROWS = 100;

/** The least width of the labels of tracks, and the part of the canvas that they may take. */
const LABELS = 84;
const LABELS_PART = 0.22;

/**
 * Returns the labels of a track, the longest first: without pointers, which say nothing.
 * @param {TrackData} track
 * @param {boolean} isBelow whether a track of the same stream is above
 */
function trackLabels({ name }, isBelow) {
  const label = printable(name).replace(/ ?\(0x[0-9a-f]+\)/gi, '');
  const forms = isBelow ? [label.replace(/^.*: /, ''), label.replace(/^.*: (\w+) .*$/, '$1')]
    : [label, label.replace(/(: [^:]*| \([^)]*\))$/, '')];
  return forms.filter((form) => form !== '');
}

class TimeLineDrawing {
  /** @param {any} data */
  constructor(data) {
    this.window = new Window(data);
    this.from = 0;
    this.to = this.window.duration;
    this.selected = -1;
    /** Arrows of the selected slice. @type {Array<[number, number]>} */
    this.arrows = [];
    /** The selected range of time. @type {[number, number]|null} */
    this.range = null;
    /** @type {RegExp|null} */
    this.search = null;
    /** For each name whether it was searched for. @type {boolean[]} */
    this.matches = [];
    this.scrolled = 0;
    /** The width of the labels of tracks. */
    this.labels = LABELS;
    this.tints = this.window.names.map(tintOf);
    this.top = this.arrange();
  }

  /** Returns where each lane begins. */
  arrange() {
    const { lanes, tracks } = this.window;
    let y = AXIS;
    const tops = lanes.map(({ track, depth }, index) => {
      const above = tracks[lanes[index - 1]?.track];
      if (depth === 0) y += this.isBelowItsScopes(track, above) ? STREAM_GAP : TRACK_GAP;
      y += LANE;
      return y - LANE;
    });
    this.height = y + TRACK_GAP;
    return tops;
  }

  /** Returns true for a track of the same stream as the one above. @param {number} track @param {TrackData} [above] */
  isBelowItsScopes(track, above) {
    const stream = this.window.streamOf(this.window.tracks[track]);
    return above !== undefined && stream !== '' && this.window.streamOf(above) === stream;
  }

  /** Returns the width of the labels of tracks. */
  labelWidth() {
    const widest = this.window.tracks.reduce((widest, track) => (
      Math.max(widest, this.surface.measure(trackLabels(track, false)[0] ?? ''))), LABELS);
    return Math.round(Math.min(widest + 14, Math.max(LABELS, this.surface.width * LABELS_PART)));
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

  draw() {
    const { context, colors } = this.surface;
    this.scrolled = this.box.scrollTop;
    this.labels = this.labelWidth();
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
    this.drawRange();
    context.restore();
    this.drawLabels();
    this.drawAxis();
    context.strokeStyle = colors.line;
    Object.assign(this.canvas.dataset, {
      drawn: String(drawn), arrows: String(arrows), from: String(Math.round(this.from)), to: String(Math.round(this.to)),
    });
  }

  /** Returns the colour of a slice. Kernels differ by name. @param {number} slice */
  fillOf(slice) {
    const { colors } = this.surface;
    const { window } = this;
    const name = window.name[slice];
    if (window.isWork[slice]) return colors.kernels[(window.places.get(name) ?? 0) % colors.kernels.length];
    return (window.isOnGpu(slice) ? colors.cuda : colors.cpu)[this.tints[name]];
  }

  /** @param {number} slice @param {number} y */
  drawSlice(slice, y) {
    const { context, colors } = this.surface;
    const x = Math.max(this.x(this.window.start[slice]), this.labels - 4);
    const end = Math.min(this.x(this.window.end[slice]), this.surface.width + 4);
    const width = end - x;
    const isFound = this.search && this.matches[this.window.name[slice]];
    context.globalAlpha = this.search && !isFound ? 0.4 : 1;
    context.fillStyle = isFound ? colors.mark : this.fillOf(slice);
    context.fillRect(x, y, Math.max(width > 4 ? width - 0.75 : width, 1), LANE - 2);
    if (width > 24) {
      context.fillStyle = colors.text;
      this.surface.write(this.window.nameOf(slice), x + 4, y + LANE / 2 - 0.5, width - 8);
    }
    if (slice === this.selected) this.drawFrame(x, y, width);
    context.globalAlpha = 1;
  }

  /** @param {number} x @param {number} y @param {number} width */
  drawFrame(x, y, width) {
    const { context, colors } = this.surface;
    context.globalAlpha = 1;
    context.strokeStyle = colors.focus;
    context.lineWidth = 2;
    context.strokeRect(x + 1, y + 1, Math.max(width - 2, 1), LANE - 4);
  }

  /** Draws arrows from launches to work: those of the selected slice, and all that are visible if they are few. Returns
   * their number. */
  drawArrows() {
    /** @type {Array<[number, number]>} */
    const arrows = [];
    for (const lane of this.window.lanes) {
      if (this.window.tracks[lane.track].kind !== 'stream' || arrows.length > MOST_ARROWS) continue;
      this.window.visible(lane, this.from, this.to, this.pixel, (slice) => {
        if (this.window.launch[slice] >= 0) arrows.push([this.window.launch[slice], slice]);
      });
    }
    const others = this.selected >= 0 || arrows.length > MOST_ARROWS ? [] : arrows;
    for (const arrow of others) this.drawArrow(...arrow, false);
    for (const arrow of this.arrows) this.drawArrow(...arrow, true);
    return others.length + this.arrows.length;
  }

  /** @param {number} launch @param {number} work @param {boolean} isSelected */
  drawArrow(launch, work, isSelected) {
    const { context, colors } = this.surface;
    const y = (slice) => this.top[this.window.laneOf(slice)] - this.scrolled;
    const [fromX, fromY] = [this.x(this.window.start[launch]), y(launch) + LANE - 2];
    const [toX, toY] = [this.x(this.window.start[work]), y(work)];
    if (Math.max(fromX, toX) < this.labels || Math.min(fromX, toX) > this.surface.width) return;
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
      const label = [`step ${number}`, String(number)].find((label) => this.surface.measure(label) <= right - x - 6);
      if (x - labelled > 10 && label) {
        context.fillText(label, x + 4, 31);
        labelled = x + this.surface.measure(label);
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
        // Scopes are recorded without kernels too.
        const isScopes = this.window.hasWork && !of.has_work;
        if (of.kind !== 'stream' || isScopes || (process !== null && of.process !== process)) return;
        const y = this.top[index] - this.scrolled;
        context.save();
        context.beginPath();
        context.rect(x, y, right - x, LANE - 2);
        context.clip();
        context.fillStyle = colors.raised;
        context.fillRect(x, y, right - x, LANE - 2);
        context.strokeStyle = colors.dim;
        context.globalAlpha = 0.5;
        context.beginPath();
        for (let at = x - LANE; at < right; at += 6) {
          context.moveTo(at, y + LANE);
          context.lineTo(at + LANE, y);
        }
        context.stroke();
        context.restore();
        const width = this.surface.measure(text) + 8;
        if (depth > 0 || width > right - x) return;
        context.fillStyle = colors.page;
        context.fillRect(x, y, width, LANE - 2);
        context.fillStyle = colors.dim;
        this.surface.write(text, x + 4, y + LANE / 2 - 0.5, width - 8);
      });
    }
  }

  /** Shades what is outside of the selected range. */
  drawRange() {
    if (!this.range) return;
    const { context, colors, width, height } = this.surface;
    const [from, to] = this.range.map((ns) => Math.min(Math.max(this.x(ns), this.labels), width));
    context.fillStyle = colors.page;
    context.globalAlpha = 0.6;
    context.fillRect(this.labels, AXIS, from - this.labels, height);
    context.fillRect(to, AXIS, width - to, height);
    context.globalAlpha = 1;
    context.fillStyle = colors.focus;
    context.fillRect(from - 1, AXIS, 2, height);
    context.fillRect(to - 1, AXIS, 2, height);
  }

  drawLabels() {
    const { context, colors, width, height } = this.surface;
    context.fillStyle = colors.page;
    context.fillRect(0, AXIS, this.labels - 1, height);
    this.window.lanes.forEach(({ track, depth }, index) => {
      const y = this.top[index] - this.scrolled;
      if (depth > 0 || y < AXIS - LANE || y > height) return;
      const { tracks, lanes } = this.window;
      const isBelow = this.isBelowItsScopes(track, tracks[lanes[index - 1]?.track]);
      const indent = isBelow ? 14 : 4;
      const room = this.labels - indent - 8;
      const labels = trackLabels(tracks[track], isBelow);
      const label = labels.find((label) => this.surface.measure(label) <= room) ?? labels[labels.length - 1] ?? '';
      context.fillStyle = tracks[track].kind === 'stream' ? colors.cudaLine : colors.cpuLine;
      context.fillText(this.surface.shortened(label, room), indent, y + LANE / 2);
      context.fillStyle = colors.line;
      if (!isBelow) context.fillRect(0, y - TRACK_GAP / 2, width, 1);
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

  /** Returns the lane at a height of the canvas; -1 for none. @param {number} offsetY */
  laneAt(offsetY) {
    const y = offsetY + this.box.scrollTop;
    return offsetY < AXIS ? -1 : this.top.findIndex((top) => y >= top && y < top + LANE);
  }

  /** Returns the slice at a place of the canvas; -1 for none. @param {MouseEvent} event */
  at({ offsetX, offsetY }) {
    const lane = this.window.lanes[this.laneAt(offsetY)];
    if (!lane || offsetX < this.labels) return -1;
    const slice = lane.slices[this.window.firstAfter(lane, this.timeAt(offsetX - 1))];
    return slice !== undefined && this.window.start[slice] <= this.timeAt(offsetX + 1) ? slice : -1;
  }
}
