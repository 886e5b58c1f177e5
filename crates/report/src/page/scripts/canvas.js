// A canvas that fits its element, in the colours of the theme.

/** Resolves a colour of the style, which may depend on the theme. @param {string} color */
function resolved(color) {
  const probe = el('span');
  probe.style.color = color;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

/** How many tints of a hue distinguish names. */
const TINTS = 5;

/** Hues of kernels, so that the ones that take longest differ most; none is that of the CPU. */
const KERNEL_HUES = [60, 160, 340, 110, 20, 200, 310, 85, 135, 40, 180, 0];

/** Returns the colours that canvases use. */
function palette() {
  const tints = (name) => Array.from({ length: TINTS }, (_, tint) => (
    resolved(`color-mix(in oklab, var(--${name}-fill) ${100 - tint * 14}%, var(--page))`)
  ));
  const color = (name) => resolved(`var(--${name})`);
  return {
    kernels: KERNEL_HUES.map((hue) => resolved(`light-dark(oklch(0.85 0.085 ${hue}), oklch(0.42 0.085 ${hue}))`)),
    cpu: tints('cpu'), cuda: tints('cuda'), cpuLine: color('cpu'), cudaLine: color('cuda'), text: color('text'),
    dim: color('dim'), line: color('line'), page: color('page'), raised: color('raised'), mark: color('mark'),
    focus: color('focus'),
  };
}

/** Returns the tint of a name: always the one of the same name. @param {string} name */
function tintOf(name) {
  let hash = 0;
  for (let at = 0; at < name.length; at += 1) hash = (hash * 31 + name.charCodeAt(at)) >>> 0;
  return hash % TINTS;
}

class Surface {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {(surface: Surface) => void} draw called when the size or the theme changes, and after `request`
   */
  constructor(canvas, draw) {
    this.canvas = canvas;
    this.draw = draw;
    this.pending = 0;
    this.width = 0;
    this.height = 0;
    /** @type {CanvasRenderingContext2D} */
    this.context = /** @type {any} */ (canvas.getContext('2d'));
    this.colors = palette();
    /** @type {Map<string, number>} */
    this.widths = new Map();
    const recolor = () => {
      this.colors = palette();
      this.request();
    };
    addEventListener('themechange', recolor);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', recolor);
    new ResizeObserver(() => this.request()).observe(canvas);
  }

  /** Draws before the next frame, however often it is called until then. */
  request() {
    this.pending ||= requestAnimationFrame(() => {
      this.pending = 0;
      this.fit();
      if (this.width > 0) this.draw(this);
    });
  }

  /** Gives the canvas as many pixels as the screen has for it. */
  fit() {
    const scale = devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    const [width, height] = [Math.round(this.width * scale), Math.round(this.height * scale)];
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    this.context.font = '12px system-ui, "Liberation Sans", sans-serif';
    this.context.textBaseline = 'middle';
    this.context.clearRect(0, 0, this.width, this.height);
  }

  /** Returns the width of a text. @param {string} text */
  measure(text) {
    let width = this.widths.get(text);
    if (width === undefined) {
      if (this.widths.size > 20_000) this.widths.clear();
      width = this.context.measureText(text).width;
      this.widths.set(text, width);
    }
    return width;
  }

  /**
   * Writes a name into a space: all of it, or what says most of it, or nothing.
   * @param {string} name
   * @param {number} x
   * @param {number} y
   * @param {number} space
   */
  write(name, x, y, space) {
    if (space < 14 || name === '') return;
    const forms = formsOf(name);
    const form = forms.find((form) => form.length < 300 && this.measure(form) <= space) ?? forms[forms.length - 1];
    const shown = this.shortened(form, space);
    if (shown !== '') this.context.fillText(shown, x, y);
  }

  /** Returns a text, or as much of its beginning and its end as fits. @param {string} text @param {number} space */
  shortened(text, space) {
    if (text.length < 300 && this.measure(text) <= space) return text;
    const cut = (kept) => `${text.slice(0, Math.ceil(kept / 2))}…${text.slice(text.length - Math.floor(kept / 2))}`;
    let [fits, tooLong] = [0, Math.min(text.length, 300)];
    while (tooLong - fits > 1) {
      const middle = (fits + tooLong) >> 1;
      if (this.measure(cut(middle)) <= space) fits = middle;
      else tooLong = middle;
    }
    return fits < 4 ? '' : cut(fits);
  }
}

/** Returns where the parameters of a function begin: at the first parenthesis that is in no template argument; its length if
 * there is none. @param {string} name */
function firstParenthesis(name) {
  let depth = 0;
  for (let at = 0; at < name.length; at += 1) {
    if (name[at] === '(' && depth === 0) return at;
    if ('<(['.includes(name[at])) depth += 1;
    if ('>)]'.includes(name[at])) depth = Math.max(0, depth - 1);
  }
  return name.length;
}

/** @type {Map<string, string[]>} */
const knownForms = new Map();

/**
 * Returns a name and shorter forms of it: without its path; of a function in C++ also without its parameters and its
 * template arguments, which come after what says most.
 * @param {string} name
 */
function formsOf(name) {
  let forms = knownForms.get(name);
  if (!forms) {
    const last = name.slice(lastSegment(name));
    const isFunction = /^[\w ~]*[\w>](<.*>)?\(.*\)$/.test(last);
    const bare = isFunction ? last.slice(0, firstParenthesis(last)) : last;
    forms = [name, last, bare, bare.replace(/<.*$/, '')].filter((form) => form !== '');
    knownForms.set(name, forms);
  }
  return forms;
}

/**
 * Creates a section for a view that needs script, and puts it before another one.
 * @param {string} id
 * @param {string} title
 * @param {...(Node|null)} content
 */
function addView(id, title, ...content) {
  const view = el('section', { id, class: 'view' }, el('h2', {}, title), ...content);
  byId('run').before(view);
  return view;
}

/** @param {string} label @param {() => void} click @param {Object<string, any>} [attributes] */
const button = (label, click, attributes = {}) => el('button', { type: 'button', click, ...attributes }, label);
