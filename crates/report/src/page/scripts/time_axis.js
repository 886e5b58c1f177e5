// Where an axis of time has its marks.

/** Steps of an axis that are whole in minutes, hours and days, in seconds. */
const LONG_STEPS = [30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

/** Returns the next of 1, 2, 5, 10, … that is not shorter; above 20 seconds, a round number of a larger unit. @param {number} ns */
function niceStep(ns) {
  const long = LONG_STEPS.find((seconds) => seconds * 1e9 >= ns);
  if (ns > 20e9 && long) return long * 1e9;
  const unit = ns > 20e9 ? 86400e9 : 1;
  const power = unit * 10 ** Math.floor(Math.log10(Math.max(ns / unit, 1)));
  const factor = [1, 2, 5, 10].find((factor) => factor * power >= ns) ?? 10;
  return factor * power;
}

/**
 * Formats a time of an axis with as many digits as its steps need. Short steps are counted in seconds however late they are.
 * @param {number} ns
 * @param {number} step
 */
function axisTime(ns, step) {
  const units = TIME_UNITS.filter(([size]) => size <= 1e9 || step > 20e9);
  const [size, , unit] = units.find(([, from]) => ns > 0 && ns >= from) ?? [1, 0, 'ns'];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  return `${(ns / size).toFixed(Math.min(digits, 9))} ${unit}`;
}
