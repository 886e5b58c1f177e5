// Where each node of the call tree is drawn.

/**
 * The call tree: columns of numbers, as the profiler writes them.
 * @typedef {{names: string[], parent: number[], name: number[], calls: number[], cpu: number[],
 *   cuda: number[], cut: number[]}} TreeData
 */

class CallTree {
  /** @param {TreeData} data */
  constructor(data) {
    this.names = data.names.map(printable);
    this.name = data.name;
    this.calls = data.calls;
    this.parent = data.parent.map((place) => place - 1);
    this.own = { cpu: data.cpu, cuda: data.cuda };
    /** Nodes that called more than is below them; upside down, those with further callers. */
    this.cut = new Set(data.cut);
    /** @type {Object<string, Float64Array>} for each clock, the times of nodes with all below them */
    this.sums = { cpu: this.sum(data.cpu), cuda: this.sum(data.cuda) };
    /** @type {number[][]} */
    this.children = this.parent.map(() => []);
    /** @type {number[]} */
    this.roots = [];
    this.depth = new Uint32Array(this.parent.length);
    this.parent.forEach((parent, node) => {
      (parent < 0 ? this.roots : this.children[parent]).push(node);
      this.depth[node] = parent < 0 ? 0 : this.depth[parent] + 1;
    });
  }

  get size() {
    return this.parent.length;
  }

  /** @param {number[]} own */
  sum(own) {
    const sums = Float64Array.from(own);
    for (let node = sums.length - 1; node >= 0; node -= 1) {
      if (this.parent[node] >= 0) sums[this.parent[node]] += sums[node];
    }
    return sums;
  }

  /** Returns the time of a clock in all calls. @param {string} clock */
  total(clock) {
    return this.roots.reduce((sum, node) => sum + this.sums[clock][node], 0);
  }

  /** Returns the callees of a node, or the nodes without a caller for -1: those that took longest first.
   * @param {number} node @param {string} clock */
  callees(node, clock) {
    const sums = this.sums[clock];
    const callees = node < 0 ? this.roots : this.children[node];
    return callees.filter((callee) => sums[callee] > 0).sort((left, right) => sums[right] - sums[left]);
  }

  /** Returns a node and its callers, from the outermost. @param {number} node */
  path(node) {
    const path = [];
    for (let at = node; at >= 0; at = this.parent[at]) path.push(at);
    return path.reverse();
  }

  /** @param {number} node */
  nameOf(node) {
    return this.names[this.name[node]];
  }
}

/** The most callers of a call that the tree upside down follows. */
const MOST_CALLERS = 32;

/**
 * Turns a tree upside down: functions by their own time, and below each one its callers. The time of a path is own time
 * where the path ends; calls are those of the function at the top.
 * @param {CallTree} tree
 * @returns {TreeData}
 */
function upsideDown(tree) {
  const paths = { names: tree.names, parent: [], name: [], calls: [], cpu: [], cuda: [] };
  /** @type {Map<string, number>} */
  const known = new Map();
  const cut = new Set();
  for (let node = 0; node < tree.size; node += 1) {
    let place = -1;
    let at = node;
    for (let callers = 0; at >= 0 && callers <= MOST_CALLERS; at = tree.parent[at], callers += 1) {
      const key = `${place}/${tree.name[at]}`;
      let next = known.get(key);
      if (next === undefined) {
        next = paths.parent.push(place + 1) - 1;
        known.set(key, next);
        paths.name.push(tree.name[at]);
        for (const column of [paths.calls, paths.cpu, paths.cuda]) column.push(0);
      }
      paths.calls[next] += tree.calls[node];
      place = next;
    }
    paths.cpu[place] += tree.own.cpu[node];
    paths.cuda[place] += tree.own.cuda[node];
    if (at >= 0) cut.add(place);
  }
  return { ...paths, cut: [...cut] };
}

/**
 * A node as it is drawn: from `x` on, `width` pixels wide, in a row below the top. `hidesMore` if there is no room for what
 * is below it.
 * @typedef {{node: number, x: number, width: number, row: number, hidesMore: boolean}} Box
 */

/** How many callers of the zoomed node are drawn. */
const CALLERS_SHOWN = 3;

/** Nodes that are narrower are not drawn. */
const NARROWEST = 0.6;

/**
 * Lays out what is visible: the last callers of the zoomed node in whole rows, then what is below it and has room.
 * @param {CallTree} tree
 * @param {string} clock
 * @param {number} zoomed the node that has the whole width; -1 for all of them
 * @param {number} width
 * @param {number} rows
 * @returns {Box[]}
 */
function layout(tree, clock, zoomed, width, rows) {
  const callers = zoomed < 0 ? [] : tree.path(zoomed).slice(-CALLERS_SHOWN - 1);
  const boxes = callers.map((node, row) => ({ node, x: 0, width, row, hidesMore: false }));
  const sums = tree.sums[clock];
  const whole = zoomed < 0 ? tree.total(clock) : sums[zoomed];
  const scale = whole > 0 ? width / whole : 0;
  const place = (node, x, row) => {
    for (const callee of tree.callees(node, clock)) {
      const box = { node: callee, x, width: sums[callee] * scale, row, hidesMore: false };
      // The further callees are narrower still.
      if (box.width < NARROWEST) return;
      boxes.push(box);
      if (row + 1 < rows) stack.push(box);
      else box.hidesMore = tree.children[callee].some((below) => sums[below] * scale >= NARROWEST);
      x += box.width;
    }
  };
  /** @type {Box[]} */
  const stack = [];
  place(zoomed, 0, callers.length);
  for (let box = stack.pop(); box; box = stack.pop()) place(box.node, box.x, box.row + 1);
  return boxes;
}
