// Checks profiles against speedscope's schema, opens them in speedscope in a headless browser, and compares the table of
// each profile with the rows of the same run.
//
//     CHROMIUM=PROGRAM NODE_MODULES=FOLDER node read_in_speedscope.mjs STEM...
//
// Reads STEM.speedscope.json and STEM.rows.json. No request leaves this machine.

import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import url from 'node:url';

const { CHROMIUM = 'chromium', NODE_MODULES } = process.env;
const require = createRequire(path.join(path.resolve(NODE_MODULES), 'x.js'));
const puppeteer = require('puppeteer-core');
const Ajv = require('ajv');
const release = path.join(path.resolve(NODE_MODULES), 'speedscope/dist/release');
const schema = JSON.parse(fs.readFileSync(path.join(release, 'file-format-schema.json'), 'utf8'));
const validate = new Ajv({ strict: false }).compile(schema);
// The time limit for opening a profile, in milliseconds.
const PATIENCE = 60_000;

/** Opens a file as speedscope's own command does. Shows the table of the first profile. */
async function open(browser, file, folder) {
  const script = path.join(folder, 'profile.js');
  const base64 = fs.readFileSync(file).toString('base64');
  fs.writeFileSync(script, `speedscope.loadFileFromBase64(${JSON.stringify(path.basename(file))}, "${base64}")`);
  const page = await browser.newPage();
  const index = url.pathToFileURL(path.join(release, 'index.html'));
  await page.goto(`${index}#localProfilePath=${script}`);
  await page.waitForFunction(() => document.body.innerText.includes('Time Order'), { timeout: PATIENCE, polling: 50 });
  await page.keyboard.press('3');
  return page;
}

/** Returns the name, the number and the table of the profile that is shown: name, total and self time of each function. */
function shown(page) {
  return page.evaluate(() => {
    const heading = document.body.innerText.match(/^(.*) \((\d+)\/(\d+)\)$/m);
    // The head and the body are tables of their own.
    const rows = [...document.querySelectorAll('tr')].map((row) => [...row.querySelectorAll('td')].map((cell) => cell.innerText.trim()));
    return {
      name: heading?.[1],
      number: Number(heading?.[2] ?? 1),
      count: Number(heading?.[3] ?? 1),
      rows: rows.filter((cells) => cells.length === 3 && cells[0].endsWith('%)')).map(([total, own, name]) => ({ total, own, name })),
    };
  });
}

/** Returns the names of the functions in a profile of a file. */
function namesOf(document, { type, samples, events }) {
  const frames = type === 'sampled' ? samples.flat() : events.map(({ frame }) => frame);
  return [...new Set(frames.map((frame) => document.shared.frames[frame].name))];
}

/** Returns the tables of all profiles. Waits for each until it has its functions and stays as it is. */
async function profiles(page, document) {
  const found = [];
  for (const [number, profile] of document.profiles.entries()) {
    if (number > 0) await page.keyboard.press('n');
    const wanted = JSON.stringify(namesOf(document, profile).sort());
    const end = Date.now() + PATIENCE;
    for (let last, now; ; last = now) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      now = await shown(page);
      const names = JSON.stringify(now.rows.map(({ name }) => name).sort());
      if (now.number === number + 1 && names === wanted && JSON.stringify(now) === JSON.stringify(last)) break;
      if (Date.now() > end) throw new Error(`profile ${number + 1} shows ${names} instead of ${wanted}`);
    }
    found.push(await shown(page));
  }
  return found;
}

const UNITS = { ns: 1, 'µs': 1e3, ms: 1e6, s: 1e9, B: 1, KB: 1024, MB: 1024 ** 2, GB: 1024 ** 3 };

/** Returns a value that the page shows, such as `10.19ms (48%)`, and how much it may be rounded. */
function value(text) {
  const minutes = text.match(/^(\d+):(\d+(?:\.\d+)?)/);
  if (minutes) return { value: (60 * minutes[1] + Number(minutes[2])) * 1e9, within: 0.51e9 };
  const [, number, unit] = text.match(/^([\d.]+)\s*(ns|µs|ms|s|B|KB|MB|GB)\b/) ?? [];
  const decimals = (number?.split('.')[1] ?? '').length;
  return { value: Number(number) * UNITS[unit], within: 0.501 * 10 ** -decimals * UNITS[unit] };
}

/** Adds up the self times of functions in several profiles. */
function sums(profiles) {
  const sums = new Map();
  for (const { name, own } of profiles.flatMap((profile) => profile.rows)) {
    const { value: ns, within } = value(own);
    const sum = sums.get(name) ?? { value: 0, within: 0 };
    sums.set(name, { value: sum.value + ns, within: sum.within + within });
  }
  return sums;
}

async function check(browser, stem, folder) {
  const file = `${stem}.speedscope.json`;
  const { rows } = JSON.parse(fs.readFileSync(`${stem}.rows.json`, 'utf8'));
  let count = 0;
  let failed = 0;
  const equal = (what, found, wanted, within = 0) => {
    count += 1;
    const near = typeof wanted === 'number' ? Math.abs(found - wanted) <= within : found === wanted;
    if (!near) {
      failed += 1;
      console.error(`${path.basename(file)}: ${what} is ${found}, not ${wanted}`);
    }
  };
  const document = JSON.parse(fs.readFileSync(file, 'utf8'));
  equal('what the schema finds', validate(document) ? '' : JSON.stringify(validate.errors.slice(0, 3)), '');
  const page = await open(browser, file, folder);
  const all = await profiles(page, document);
  await page.close();
  equal('the number of profiles', all[0].count, document.profiles.length);
  if (all.length > 1) {
    equal('the names of the profiles', all.map(({ name }) => name).join(), document.profiles.map(({ name }) => name).join());
  }
  const isWindow = document.profiles.some(({ type }) => type === 'evented');
  const named = (start) => all.filter((profile, number) => document.profiles[number].name.startsWith(start));
  const is = (kind) => (_, number) => document.profiles[number].type === 'evented' && document.profiles[number].name.startsWith('stream') === (kind === 'stream');
  const compare = (what, profiles, of) => {
    const found = sums(profiles);
    for (const row of rows.filter((row) => of(row) > 0)) {
      const { value: shown = 0, within = 0 } = found.get(row.name) ?? {};
      // Windows round all starts and ends, summaries each path.
      equal(`${what} of ${row.name}`, shown, of(row), within + 5 * (isWindow ? row.calls : rows.length));
    }
  };
  const cpu = (row) => row.cpu?.self_ns ?? 0;
  const cuda = (row) => row.cuda?.self_ns ?? 0;
  equal('the number of files without a row with times', rows.some((row) => cpu(row) > 0 || cuda(row) > 0) ? 0 : 1, 0);
  compare('the CPU time', named('all, by CPU time'), cpu);
  compare('the CUDA time', named('all, by CUDA time'), cuda);
  compare('the memory', named('all, by host bytes'), (row) => row.memory?.self_cpu_allocated ?? 0);
  if (isWindow) {
    compare('the CPU time on all threads', all.filter(is('thread')), cpu);
    compare('the CUDA time on all streams', all.filter(is('stream')), cuda);
  }
  console.log(`${path.basename(file)}: ${failed ? `${failed} of ${count} differ` : `${count} right`}, ${all.length} profiles`);
  return failed;
}

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'speedscope-'));
const browser = await puppeteer.launch({
  executablePath: CHROMIUM,
  headless: true,
  userDataDir: path.join(folder, 'browser'),
  protocolTimeout: PATIENCE,
  // The table has only the rows that fit.
  defaultViewport: { width: 1400, height: 4000 },
  args: ['--no-sandbox', '--enable-unsafe-swiftshader', '--disable-background-networking', '--no-first-run', '--host-resolver-rules=MAP * ~NOTFOUND'],
});
let failed = 0;
try {
  for (const stem of process.argv.slice(2)) failed += await check(browser, stem, folder);
} finally {
  await browser.close();
  fs.rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}
process.exit(failed || process.argv.length < 3 ? 1 : 0);
