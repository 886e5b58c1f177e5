// Numbers as text, as the tables of the profiler show them.

const TIME_UNITS = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
const BYTE_UNITS = [[2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']];

/**
 * Formats a number with three significant digits; with more if it has more before the point.
 * @param {number} value
 */
function digits(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

/**
 * Formats a value in the largest unit in which it is at least one after rounding.
 * @param {number} value
 * @param {Array<[number, string]>} units from the largest to the smallest
 * @param {number} step how many of a unit make the next one
 */
function inUnits(value, units, step) {
  const smallest = units[units.length - 1];
  if (value === 0) return `0 ${smallest[1]}`;
  const starts = 1 - 0.5 / step;
  const [size, name] = units.find(([size]) => Math.abs(value) / size >= starts) ?? smallest;
  return `${digits(value / size)} ${name}`;
}

/** Formats a time: `812 ns`, `51.6 µs`. @param {number} ns */
const time = (ns) => inUnits(ns, TIME_UNITS, 1e3);

/** Formats a number of bytes: `12 B`, `1.50 KiB`. @param {number} bytes */
const bytes = (bytes) => (Math.abs(bytes) < 1024 ? `${bytes} B` : inUnits(bytes, BYTE_UNITS, 1024));

/** Formats a number in groups of three digits. @param {number} number */
const grouped = (number) => String(number).replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f');

/** Formats a number with its noun: `1 call`, `2 calls`. @param {number} number @param {string} noun */
const counted = (number, noun) => `${grouped(number)} ${noun}${number === 1 ? '' : 's'}`;

/** Formats a percentage with two digits. @param {number} percent */
const percent = (percent) => percent.toFixed(2);

/** Formats a fraction as a percentage. @param {number} fraction */
const share = (fraction) => `${(100 * fraction).toFixed(fraction > 0 && fraction < 0.0995 ? 1 : 0)} %`;

/** Characters that `printable` in Rust replaces: they would hide or reorder text. */
const HARMFUL = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Replaces control characters. @param {string} text */
const printable = (text) => text.replace(HARMFUL, '\ufffd');

/**
 * Returns where the last segment of a path starts: after `::`, `/` or `.`, outside of brackets.
 * @param {string} path
 */
function lastSegment(path) {
  let depth = 0;
  let start = 0;
  for (let at = 0; at < path.length - 1; at += 1) {
    const char = path[at];
    if ('<(['.includes(char)) depth += 1;
    if ('>)]'.includes(char)) depth = Math.max(0, depth - 1);
    const ends = char === '/' || char === '.' || (char === ':' && path[at - 1] === ':');
    if (depth === 0 && ends) start = at + 1;
  }
  return start;
}
