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
    /** Nodes that called more than is below them. */
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

/**
 * A node as it is drawn: from `x` on, `width` pixels wide, in a row below the top.
 * @typedef {{node: number, x: number, width: number, row: number}} Box
 */

/** Nodes that are narrower are not drawn. */
const NARROWEST = 0.6;

/**
 * Lays out what is visible: the callers of the zoomed node in whole rows, then everything below it.
 * @param {CallTree} tree
 * @param {string} clock
 * @param {number} zoomed the node that has the whole width; -1 for all of them
 * @param {number} width
 * @returns {Box[]}
 */
function layout(tree, clock, zoomed, width) {
  const callers = zoomed < 0 ? [] : tree.path(zoomed);
  const boxes = callers.map((node, row) => ({ node, x: 0, width, row }));
  const sums = tree.sums[clock];
  const whole = zoomed < 0 ? tree.total(clock) : sums[zoomed];
  const scale = whole > 0 ? width / whole : 0;
  const place = (node, x, row) => {
    for (const callee of tree.callees(node, clock)) {
      const box = { node: callee, x, width: sums[callee] * scale, row };
      // The further callees are narrower still.
      if (box.width < NARROWEST) return;
      boxes.push(box);
      stack.push(box);
      x += box.width;
    }
  };
  /** @type {Box[]} */
  const stack = [];
  place(zoomed, 0, callers.length);
  for (let box = stack.pop(); box; box = stack.pop()) place(box.node, box.x, box.row + 1);
  return boxes;
}
