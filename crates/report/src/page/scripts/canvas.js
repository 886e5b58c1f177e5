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

/** Returns the colours that canvases use. */
function palette() {
  const tints = (name) => Array.from({ length: TINTS }, (_, tint) => (
    resolved(`color-mix(in oklab, var(--${name}-fill) ${100 - tint * 14}%, var(--page))`)
  ));
  const color = (name) => resolved(`var(--${name})`);
  return {
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
   * Writes a text into a space: all of it, or its end, which says most, or nothing.
   * @param {string} text
   * @param {number} x
   * @param {number} y
   * @param {number} space
   */
  write(text, x, y, space) {
    if (space < 14) return;
    // Long names are those of kernels, with their parameters at the end.
    let shown = text.length > 300 ? text.slice(lastSegment(text)).slice(0, 300) : text;
    if (this.measure(shown) > space) {
      const short = shown.slice(lastSegment(shown));
      shown = this.measure(short) <= space ? short : this.shortened(short, space);
    }
    if (shown !== '') this.context.fillText(shown, x, y);
  }

  /** Returns a text, or as much of its beginning as fits. @param {string} text @param {number} space */
  shortened(text, space) {
    if (this.measure(text) <= space) return text;
    let [fits, tooLong] = [0, text.length];
    while (tooLong - fits > 1) {
      const middle = (fits + tooLong) >> 1;
      if (this.context.measureText(`${text.slice(0, middle)}…`).width <= space) fits = middle;
      else tooLong = middle;
    }
    return fits < 2 ? '' : `${text.slice(0, fits)}…`;
  }
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
