// The slices of a window, arranged so that those of a span are found without looking at the others.

/**
 * A track as the profiler writes it; `start` and `launch` are differences, and a launch is a number of a slice plus one.
 * `others` are the places of slices of a stream with work that are no work.
 * @typedef {{name: string, kind: string, process: string, device?: number, stream?: number, has_work: boolean,
 *   others?: number[], start: number[], duration: number[], name_of: number[], launch?: number[], work_of?: number[]}} TrackData
 */

/**
 * A row of slices that do not overlap, in the order of their starts.
 * @typedef {{slices: Uint32Array, track: number, depth: number}} Lane
 */

/** How many rows a track has at first, and at most: deeper slices are not drawn. */
const LEVELS = 40;
const DEEPEST = 1000;

class Window {
  /** @param {any} data */
  constructor(data) {
    this.names = data.names.map(printable);
    this.duration = Math.max(data.duration_ns, 1);
    this.steps = data.steps;
    /** When kernels were not recorded: from, to, process. @type {Array<[number, number, string|null]>} */
    this.kernelGaps = data.kernel_gaps;
    /** What is not known of each device, by process and device. @type {Map<string, Array<[number, number]>>} */
    this.notRecorded = new Map(data.not_recorded.map(({ process, device, spans }) => {
      let at = 0;
      const times = spans.map((difference) => (at += difference));
      return [`${process}/${device ?? undefined}`, times.flatMap((start, index) => (index % 2 === 0 ? [[start, times[index + 1]]] : []))];
    }));
    this.omitted = data.omitted;
    this.omittedBelow = data.omitted_below_ns;
    /** @type {TrackData[]} */
    this.tracks = [...data.tracks];
    this.count = this.tracks.reduce((count, track) => count + track.start.length, 0);
    this.start = new Float64Array(this.count);
    this.end = new Float64Array(this.count);
    this.name = new Uint32Array(this.count);
    this.track = new Uint32Array(this.count);
    this.depth = new Uint32Array(this.count);
    /** For each slice the one around it on its track; -1 for none. */
    this.outer = new Int32Array(this.count).fill(-1);
    /** For each slice of a stream, the slice that launched it; -1 for none. */
    this.launch = new Int32Array(this.count).fill(-1);
    /** Whether each slice is a kernel, a copy or a fill. */
    this.isWork = new Uint8Array(this.count);
    /** Of a kernel: grid, block, registers, bytes of shared memory; of a copy or a fill: bytes. @type {number[][]} */
    this.details = data.work;
    /** For each slice the number of its details, from 1 on; 0 for none. */
    this.work = new Uint32Array(this.count);
    /** @type {Lane[]} */
    this.lanes = [];
    this.hasWork = this.tracks.some((track) => track.has_work);
    this.fill();
    this.order(LEVELS);
    this.places = this.workPlaces();
  }

  fill() {
    let slice = 0;
    this.tracks.forEach((track, index) => {
      const others = new Set(track.others);
      let start = 0;
      let launch = 0;
      for (let at = 0; at < track.start.length; at += 1, slice += 1) {
        start += track.start[at];
        this.start[slice] = start;
        this.end[slice] = start + track.duration[at];
        this.name[slice] = track.name_of[at];
        this.track[slice] = index;
        this.work[slice] = track.work_of?.[at] ?? 0;
        this.isWork[slice] = Number(track.has_work && !others.has(at));
        if (track.launch) {
          launch += track.launch[at];
          this.launch[slice] = launch - 1;
        }
      }
    });
  }

  /** Puts the slices of each track into lanes: a slice inside another one is one lane deeper. @param {number} levels */
  order(levels) {
    this.levels = levels;
    this.lanes = [];
    /** How many slices are in no lane. */
    this.tooDeep = 0;
    /** @type {number[][][]} */
    const lanes = this.tracks.map(() => []);
    /** @type {number[]} */
    let around = [];
    for (let slice = 0; slice < this.count; slice += 1) {
      const track = this.track[slice];
      if (slice > 0 && this.track[slice - 1] !== track) around = [];
      while (around.length > 0 && this.end[around[around.length - 1]] <= this.start[slice]) around.pop();
      const depth = Math.min(around.length, levels - 1);
      this.outer[slice] = around[around.length - 1] ?? -1;
      this.depth[slice] = depth;
      if (depth < around.length) this.tooDeep += 1;
      else (lanes[track][depth] ??= []).push(slice);
      around.push(slice);
    }
    /** The place of the first lane of each track. @type {number[]} */
    this.firstLane = [];
    for (const track of this.trackOrder()) {
      this.firstLane[track] = this.lanes.length;
      lanes[track].forEach((slices, depth) => this.lanes.push({ slices: Uint32Array.from(slices), track, depth }));
    }
  }

  /** Returns the tracks as they are shown: threads, then streams, the scopes of each above its kernels. */
  trackOrder() {
    const streams = this.tracks.map((track) => this.streamOf(track));
    const key = (index) => [
      Number(this.tracks[index].kind === 'stream'), streams[index] === '' ? index : streams.indexOf(streams[index]),
      Number(this.tracks[index].has_work), index,
    ];
    const compared = (left, right) => left.map((value, at) => value - right[at]).find((difference) => difference !== 0) ?? 0;
    return this.tracks.map((_, index) => index).sort((left, right) => compared(key(left), key(right)));
  }

  /** Returns what tracks of one stream have in common; empty for a thread. @param {TrackData} track */
  streamOf({ kind, process, device, stream }) {
    return kind === 'stream' ? `${process}/${device ?? ''}/${stream}` : '';
  }

  /** Returns for each name of a kernel its place among them, the longest in all first. */
  workPlaces() {
    /** @type {Map<number, number>} */
    const sums = new Map();
    for (let slice = 0; slice < this.count; slice += 1) {
      if (this.isWork[slice]) sums.set(this.name[slice], (sums.get(this.name[slice]) ?? 0) + this.end[slice] - this.start[slice]);
    }
    const sorted = [...sums].sort(([, left], [, right]) => right - left);
    return new Map(sorted.map(([name], place) => [name, place]));
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

  /**
   * Returns pairs of launches and their work: for work its own, for a slice of a thread those of all in it.
   * @param {number} slice
   * @param {number} most
   */
  arrowsOf(slice, most) {
    /** @type {Array<[number, number]>} */
    const arrows = [];
    if (slice < 0) return arrows;
    if (this.launch[slice] >= 0) arrows.push([this.launch[slice], slice]);
    for (let work = 0; work < this.count && arrows.length < most; work += 1) {
      if (this.launch[work] >= 0 && this.isInside(this.launch[work], slice)) arrows.push([this.launch[work], work]);
    }
    return arrows;
  }

  /** @param {number} inner @param {number} slice */
  isInside(inner, slice) {
    return this.track[inner] === this.track[slice] && this.start[inner] >= this.start[slice]
      && this.end[inner] <= this.end[slice] && this.depth[inner] >= this.depth[slice];
  }

  /** Returns the longest slice of a name, on a thread if there is one; -1 for none. @param {number} name */
  longest(name) {
    let longest = -1;
    for (let slice = 0; slice < this.count; slice += 1) {
      if (this.name[slice] !== name) continue;
      const better = longest < 0 || Number(this.isOnGpu(slice)) < Number(this.isOnGpu(longest))
        || (this.isOnGpu(slice) === this.isOnGpu(longest)
          && this.end[slice] - this.start[slice] > this.end[longest] - this.start[longest]);
      if (better) longest = slice;
    }
    return longest;
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

  /** Returns true if a slice is in no lane: its track has too few. @param {number} slice */
  isTooDeep(slice) {
    return this.outer[slice] >= 0 && this.depth[this.outer[slice]] === this.depth[slice];
  }

  /** Returns the lane of a slice. @param {number} slice */
  laneOf(slice) {
    return this.firstLane[this.track[slice]] + this.depth[slice];
  }
}
