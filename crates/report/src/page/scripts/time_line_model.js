// The slices of a window, arranged so that those of a span are found without looking at the others.

/**
 * A track as the profiler writes it; `start` and `launch` are differences, and a launch is a number of a slice plus one.
 * @typedef {{name: string, kind: string, process: string, device: number|null, start: number[], duration: number[],
 *   name_of: number[], launch: number[]|null, work_of?: number[]}} TrackData
 */

/**
 * A row of slices that do not overlap, in the order of their starts.
 * @typedef {{slices: Uint32Array, track: number, depth: number}} Lane
 */

/** The most rows of a track: deeper slices are not drawn. */
const DEEPEST = 40;

class Window {
  /** @param {any} data */
  constructor(data) {
    this.names = data.names.map(printable);
    this.duration = Math.max(data.duration_ns, 1);
    this.steps = data.steps;
    /** When kernels were not recorded: from, to, process. @type {Array<[number, number, string|null]>} */
    this.kernelGaps = data.kernel_gaps;
    this.omitted = data.omitted;
    this.omittedBelow = data.omitted_below_ns;
    /** CPU threads first, then streams. @type {TrackData[]} */
    this.tracks = [...data.tracks];
    this.count = this.tracks.reduce((count, track) => count + track.start.length, 0);
    this.start = new Float64Array(this.count);
    this.end = new Float64Array(this.count);
    this.name = new Uint32Array(this.count);
    this.track = new Uint32Array(this.count);
    this.depth = new Uint16Array(this.count);
    /** For each slice of a stream, the slice that launched it; -1 for none. */
    this.launch = new Int32Array(this.count).fill(-1);
    /** Of a kernel: grid, block, registers, bytes of shared memory; of a copy or a fill: bytes. @type {number[][]} */
    this.details = data.work;
    /** For each slice the number of its details, from 1 on; 0 for none. */
    this.work = new Uint32Array(this.count);
    /** @type {Lane[]} */
    this.lanes = [];
    this.fill();
    this.order();
  }

  fill() {
    let slice = 0;
    this.tracks.forEach((track, index) => {
      let start = 0;
      let launch = 0;
      for (let at = 0; at < track.start.length; at += 1, slice += 1) {
        start += track.start[at];
        this.start[slice] = start;
        this.end[slice] = start + track.duration[at];
        this.name[slice] = track.name_of[at];
        this.track[slice] = index;
        this.work[slice] = track.work_of?.[at] ?? 0;
        if (track.launch) {
          launch += track.launch[at];
          this.launch[slice] = launch - 1;
        }
      }
    });
  }

  /** Puts the slices of each track into lanes: a slice inside another one is one lane deeper. */
  order() {
    /** @type {number[][][]} */
    const lanes = this.tracks.map(() => []);
    /** @type {number[]} */
    let around = [];
    for (let slice = 0; slice < this.count; slice += 1) {
      const track = this.track[slice];
      if (slice > 0 && this.track[slice - 1] !== track) around = [];
      while (around.length > 0 && this.end[around[around.length - 1]] <= this.start[slice]) around.pop();
      const depth = Math.min(around.length, DEEPEST - 1);
      this.depth[slice] = depth;
      (lanes[track][depth] ??= []).push(slice);
      around.push(slice);
    }
    const isStream = (track) => Number(this.tracks[track].kind === 'stream');
    const order = this.tracks.map((_, track) => track).sort((left, right) => isStream(left) - isStream(right));
    this.lanes = order.flatMap((track) => lanes[track].map((slices, depth) => (
      { slices: Uint32Array.from(slices), track, depth }
    )));
  }

  /** Returns the place of the first slice of a lane that ends after a time. @param {Lane} lane @param {number} time
   * @param {number} [from] a place to begin at */
  firstAfter({ slices }, time, from = 0) {
    let [low, high] = [from, slices.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.end[slices[middle]] > time) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /**
   * Calls a function for what a lane shows in a span: for each slice that is at least a pixel wide, and once for all that
   * end within one pixel.
   * @param {Lane} lane
   * @param {number} from
   * @param {number} to
   * @param {number} pixel the time that one pixel shows
   * @param {(slice: number) => void} visit
   */
  visible(lane, from, to, pixel, visit) {
    const { slices } = lane;
    for (let at = this.firstAfter(lane, from); at < slices.length;) {
      const slice = slices[at];
      if (this.start[slice] >= to) return;
      visit(slice);
      const isThin = this.end[slice] - this.start[slice] < pixel;
      // The next pixel begins there.
      const next = from + (Math.floor((this.start[slice] - from) / pixel) + 1) * pixel;
      at = isThin ? Math.max(at + 1, this.firstAfter(lane, next, at + 1)) : at + 1;
    }
  }

  /** @param {number} slice */
  nameOf(slice) {
    return this.names[this.name[slice]];
  }

  /** Returns the launch parameters of a kernel, or the bytes and the rate of a copy or a fill. @param {number} slice */
  detailsOf(slice) {
    const details = this.details[this.work[slice] - 1];
    if (!details) return '';
    if (details.length === 1) {
      const ns = this.end[slice] - this.start[slice];
      return `, ${bytes(details[0])}${ns > 0 ? ` at ${digits(details[0] / ns)} GB/s` : ''}`;
    }
    const extents = (first) => details.slice(first, first + 3).join(' × ');
    return `, grid ${extents(0)}, block ${extents(3)}, ${counted(details[6], 'register')} per thread, `
      + `${bytes(details[7])} of shared memory`;
  }

  /** @param {number} slice */
  isOnGpu(slice) {
    return this.tracks[this.track[slice]].kind === 'stream';
  }

  /** Returns the lane of a slice. @param {number} slice */
  laneOf(slice) {
    return this.lanes.findIndex((lane) => lane.track === this.track[slice] && lane.depth === this.depth[slice]);
  }
}
