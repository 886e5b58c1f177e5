// Numbers as text, as the tables of the profiler show them.

/** Units, the largest first: their size, from which value on they are used, and their name. Rust has the same. */
const TIME_UNITS = [
  [86400e9, 359820e9, 'days'],
  [3600e9, 5997e9, 'h'],
  [60e9, 999.5e9, 'min'],
  [1e9, 999.5e6, 's'],
  [1e6, 999.5e3, 'ms'],
  [1e3, 999.5, 'µs'],
  [1, 0, 'ns'],
];
const BYTE_UNITS = [[2 ** 30, 2 ** 30 - 2 ** 19, 'GiB'], [2 ** 20, 2 ** 20 - 2 ** 9, 'MiB'], [2 ** 10, 1023.5, 'KiB'], [1, 0, 'B']];

/**
 * Formats a number with three significant digits; with more if it has more before the point.
 * @param {number} value
 */
function digits(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

/**
 * Formats a value in the largest unit that is used for it.
 * @param {number} value
 * @param {Array<[number, number, string]>} units
 */
function inUnits(value, units) {
  const [size, , name] = units.find(([, from]) => Math.abs(value) >= from) ?? units[units.length - 1];
  return value === 0 ? `0 ${name}` : `${digits(value / size)} ${name}`;
}

/** Formats a time: `812 ns`, `51.6 µs`, `30.0 h`. @param {number} ns */
const time = (ns) => inUnits(ns, TIME_UNITS);

/** Formats a number of bytes: `12 B`, `1.50 KiB`. @param {number} bytes */
const bytes = (bytes) => (Math.abs(bytes) < 1024 ? `${bytes} B` : inUnits(bytes, BYTE_UNITS));

/** Formats a number in groups of three digits. @param {number} number */
const grouped = (number) => String(number).replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f');

/** Formats a number with its noun: `1 call`, `2 calls`. @param {number} number @param {string} noun */
const counted = (number, noun) => `${grouped(number)} ${noun}${number === 1 ? '' : 's'}`;

/** Formats a percentage with two digits. @param {number} percent */
const percent = (percent) => percent.toFixed(2);

/** Formats a fraction as a percentage. @param {number} fraction */
const share = (fraction) => (fraction > 0 && fraction < 0.0005 ? 'under 0.1 %' : `${(100 * fraction).toFixed(fraction > 0 && fraction < 0.0995 ? 1 : 0)} %`);

/** Characters that `printable` in Rust replaces: they would hide or reorder text. */
const HARMFUL = /[\p{Cc}\u061c\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

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
