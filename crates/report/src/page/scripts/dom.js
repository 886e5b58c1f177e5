// Elements. Text of the program becomes text nodes only, so no name is ever markup.

const SVG = 'http://www.w3.org/2000/svg';

/**
 * Sets attributes: a function becomes an event listener, `true` an attribute without value, and `null` none.
 * @param {Element} element
 * @param {Object<string, any>} attributes
 */
function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value === null || value === false || value === undefined) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
}

/**
 * Creates an element of HTML.
 * @param {string} tag
 * @param {Object<string, any>} [attributes]
 * @param {...(Node|string|null)} children
 * @returns {HTMLElement}
 */
function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  set(element, attributes);
  element.append(...children.filter((child) => child !== null));
  return element;
}

/**
 * Creates an element of SVG.
 * @param {string} tag
 * @param {Object<string, any>} [attributes]
 * @param {...(Node|string)} children
 */
function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  set(element, attributes);
  element.append(...children);
  return element;
}

/**
 * Shows a name, its path apart from its last segment.
 * @param {string} name
 * @param {RegExp|null} [search] what to mark in it; with the flag `g`
 */
function nameElement(name, search = null) {
  const text = name === '' ? '(no name)' : printable(name);
  const start = lastSegment(text);
  const bdi = el('bdi');
  if (start > 0) bdi.append(el('i', {}, ...marked(text.slice(0, start), search)));
  bdi.append(el('b', {}, ...marked(text.slice(start), search)));
  return bdi;
}

/**
 * Splits a text into plain and marked parts.
 * @param {string} text
 * @param {RegExp|null} search
 * @returns {Array<Node|string>}
 */
function marked(text, search) {
  if (!search) return [text];
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(search)) {
    if (match[0] === '') continue;
    parts.push(text.slice(end, match.index), el('mark', {}, match[0]));
    end = match.index + match[0].length;
  }
  return [...parts, text.slice(end)];
}

/** Returns the element with an id, which exists. @param {string} id @returns {HTMLElement} */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/**
 * Compiles what a user searches for: a text, in upper or lower case.
 * @param {string} text
 * @returns {RegExp|null}
 */
const searchFor = (text) => (text === '' ? null : new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'gi'));
