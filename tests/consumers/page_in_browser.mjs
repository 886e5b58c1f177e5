// Uses pages of the profiler in a headless browser as a person does: sorts, searches, opens rows, zooms, moves, by
// pointer and by keyboard; in both themes, at several widths, and without script.
//
//     CHROMIUM=PROGRAM NODE_MODULES=FOLDER node page_in_browser.mjs FOLDER
//
// FOLDER has `cpu.html` and `gpu.html` (quickstart), `window.html` (a window of quickstart on a GPU), and `names.html`,
// `scopes.html`, `kernels.html`, `gpus.html` and `hostile.html` of the tests. No request leaves this machine, and a page makes none at all.

import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const { CHROMIUM = 'chromium', NODE_MODULES } = process.env;
const require = createRequire(path.join(NODE_MODULES, 'x.js'));
const puppeteer = require('puppeteer-core');
const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const folder = process.argv[2];
const WIDTHS = [360, 800, 1280, 2560];

let checks = 0;
let failed = 0;

/** Counts a check, and says what is wrong if it does not hold. */
function check(where, what, found, wanted = true) {
  checks += 1;
  if (JSON.stringify(found) === JSON.stringify(wanted)) return;
  failed += 1;
  // Of two lists, the first entries that differ.
  const at = Array.isArray(found) && Array.isArray(wanted) ? found.findIndex((entry, index) => entry !== wanted[index]) : -1;
  const [left, right] = at < 0 ? [found, wanted] : [found[at], wanted[at]];
  console.error(`${where}: ${what}: ${JSON.stringify(left)}, not ${JSON.stringify(right)}`.slice(0, 1000));
}

/** Opens a page and watches it: every request beside the file itself, and every error, is a failure. */
async function open(browser, name, { script = true, width = 1280, theme = 'light', bypass = false } = {}) {
  const page = await browser.newPage();
  const where = `${name}.html`;
  await page.setViewport({ width, height: 900 });
  await page.setJavaScriptEnabled(script);
  // The tool that checks accessibility is a script that the page's policy forbids.
  if (bypass) await page.setBypassCSP(true);
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }]);
  const url = pathToFileURL(path.join(folder, where)).href;
  page.on('request', (request) => {
    if (request.url().split('#')[0] !== url) check(where, 'a request', request.url(), '');
  });
  page.on('console', (message) => check(where, 'a message on the console', message.text(), ''));
  page.on('pageerror', (error) => check(where, 'an error', String(error), ''));
  await page.goto(url, { waitUntil: 'load' });
  if (script) await page.waitForFunction(() => document.documentElement.dataset.ready === 'true', { timeout: 20_000 });
  return page;
}

/** Lets the page draw what was asked for. */
const drawn = (page) => page.evaluate(() => new Promise((done) => {
  requestAnimationFrame(() => requestAnimationFrame(() => done()));
}));

const names = (page) => page.$$eval('#functions tbody tr:not(.detail) th bdi', (all) => all.map((bdi) => bdi.textContent));
const column = (page, index) => page.$$eval(
  '#functions tbody tr:not(.detail)',
  (rows, index) => rows.map((row) => row.cells[index]?.textContent ?? ''),
  index,
);

/** The value of a cell, such as `51.6 µs`. */
function number(text) {
  const [value, unit = ''] = text.replaceAll('\u202f', '').split(' ');
  return Number(value) * ({ s: 1e9, ms: 1e6, µs: 1e3 }[unit] ?? 1);
}

const isFalling = (values) => values.every((value, index) => index === 0 || values[index - 1] >= value);

/** Sorts by the column of a title: of several, by the one at an index, which may count from the end. */
async function clickHeader(page, title, at = 0) {
  const headers = await page.$$('#functions thead th button');
  const found = [];
  for (const header of headers) {
    if ((await header.evaluate((button) => button.textContent)) === title) found.push(header);
  }
  await found.at(at).evaluate((button) => button.click());
}

async function type(page, selector, text) {
  await page.$eval(selector, (input) => { input.value = ''; });
  await page.focus(selector);
  await page.keyboard.type(text);
  await page.$eval(selector, (input) => input.dispatchEvent(new Event('input')));
}

/** The table without script has the rows that the script shows, to the character. */
async function tableWithoutScript(browser) {
  for (const name of ['cpu', 'gpu', 'names', 'hostile', 'kernels']) {
    const bare = await open(browser, name, { script: false });
    const html = await bare.content();
    await bare.close();
    const page = await open(browser, name);
    const [without, within] = await page.evaluate((html) => {
      const text = (table) => [...table.querySelectorAll('tr')].map((row) => (
        [...row.cells].map((cell) => cell.textContent.trim()).join('|')));
      const table = new DOMParser().parseFromString(html, 'text/html').querySelector('#functions table');
      return [text(table), text(document.querySelector('#functions table'))];
    }, html);
    await page.close();
    check(name, 'the table has rows without script', without.length > 3);
    check(name, 'the tables without and with script', within, without);
  }
  const page = await open(browser, 'gpu', { script: false });
  const isVisible = await page.$eval('#functions table', (table) => {
    const box = table.getBoundingClientRect();
    return box.width > 300 && box.height > 50;
  });
  check('gpu', 'the table is visible without script', isVisible);
  check('gpu', 'there is a verdict without script', (await page.$$('#verdict p')).length, 2);
  await page.close();
}

async function sorting(browser) {
  const page = await open(browser, 'names');
  await clickHeader(page, 'Calls');
  check('sort', 'calls fall', isFalling((await column(page, 2)).map(number)));
  await clickHeader(page, 'Calls');
  check('sort', 'calls rise at the second click', isFalling((await column(page, 2)).map(number).reverse()));
  check('sort', 'the header says so', await page.$eval('th[aria-sort]', (th) => th.getAttribute('aria-sort')), 'ascending');
  await clickHeader(page, 'p95', 0);
  check('sort', 'percentiles of the CPU fall', isFalling((await column(page, 8)).map(number)));
  await clickHeader(page, 'Mean', 1);
  const cuda = (await column(page, 13)).filter((text) => text !== '').map(number);
  check('sort', 'means of CUDA fall', cuda.length > 100 && isFalling(cuda));
  await clickHeader(page, 'Function');
  const sorted = await names(page);
  check('sort', 'names rise', sorted, [...sorted].sort((left, right) => left.localeCompare(right)));
  check('sort', 'some of the rows are shown at first', sorted.length, 200);
  await page.$eval('#functions .more button', (button) => button.click());
  check('sort', 'all rows are shown when asked for', (await names(page)).length, 1000);
  await page.close();
}

/** Where there is no room, percentiles go first, and the column by which rows are sorted stays. */
async function columns(browser) {
  for (const [name, count, last] of [['names', 17, ['p95', 'p99']], ['kernels', 19, ['GPU busy', 'Idle caused']]]) {
    const wide = await open(browser, name, { width: 2560 });
    const all = await shownColumns(wide);
    check(name, 'what limits a row is the second column', all.slice(0, 3), ['Function', 'Limited by', 'Calls']);
    check(name, 'all columns are shown where there is room', [all.length, all.slice(-2)], [count, last]);
    await wide.close();
    for (const width of [360, 800, 1280]) await columnsAt(browser, name, width, all);
  }
}

const shownColumns = (page) => page.$$eval('#functions thead tr > th:not([scope=colgroup])', (headers) => (
  headers.filter((header) => !header.hidden).map((header) => header.textContent)));

async function columnsAt(browser, name, width, all) {
  const page = await open(browser, name, { width });
  const where = `${name}, ${width} px`;
  const fits = () => page.$eval('#functions .scroll', (box) => box.scrollWidth <= box.clientWidth);
  const toggle = () => page.evaluate(() => [...document.querySelectorAll('#functions .bar button')].at(0).click());
  const some = await shownColumns(page);
  const isPercentile = (title) => /^p\d\d$/.test(title);
  const others = all.filter((title) => !isPercentile(title)).length;
  check(where, 'percentiles go first', some.length < all.length
    && (!some.some(isPercentile) || some.filter((title) => !isPercentile(title)).length === others));
  check(where, 'the table is not wider', await fits());
  check(where, 'the column of the order is visible', await page.$eval('#functions th[aria-sort]', (header) => (
    header.getBoundingClientRect().width > 20 && header.getBoundingClientRect().right <= innerWidth)));
  await toggle();
  check(where, 'all columns are shown when asked for', (await shownColumns(page)).length, all.length);
  await clickHeader(page, all.at(-1), -1);
  await toggle();
  const sorted = await page.$eval('#functions th[aria-sort]', (header) => !header.hidden && header.textContent);
  check(where, 'the column of another order is visible', [sorted, await fits()], [all.at(-1), true]);
  await page.close();
}

/** Without script, the style leaves out columns. */
async function columnsWithoutScript(browser) {
  const narrow = { cpu: ['Function', 'Calls', 'Self', 'Self %'], gpu: ['Function', 'Limited by', 'Self', 'Self'],
    kernels: ['Function', 'Limited by', 'Self', 'Idle caused'] };
  for (const [name, titles] of Object.entries(narrow)) {
    for (const width of WIDTHS) {
      const page = await open(browser, name, { width, script: false });
      const [fits, all] = await page.$eval('#functions .scroll', (box) => [box.scrollWidth <= box.clientWidth,
        [...box.querySelectorAll('tr')].slice(0, 3).map((row) => [...row.cells].filter((cell) => cell.offsetWidth > 0))
          .map((cells) => cells.filter((cell) => cell.scope !== 'colgroup').map((cell) => cell.textContent.trim()))]);
      const [first, second, cells] = all;
      check(name, `without script, the table is not wider than ${width} px`, fits);
      check(name, `without script, each column has its head at ${width} px`, first.length + second.length, cells.length);
      if (width === 360) check(name, 'without script, what matters most fits', [...first, ...second], titles);
      await page.close();
    }
  }
}

async function searching(browser) {
  const page = await open(browser, 'names');
  const [search, restriction] = ['#functions input[type=search]', '#functions input[type=text]'];
  await type(page, search, 'LAYER_7::');
  const found = await names(page);
  check('search', 'only names with the text', found.length === 50 && found.every((name) => name.includes('layer_7::')));
  check('search', 'the text is marked', await page.$eval('#functions mark', (mark) => mark.textContent), 'layer_7::');
  check('search', 'the number is said', (await page.$eval('#functions .status[role=status]', (status) => status.textContent))
    .startsWith('50 of 1\u202f000 functions, '));
  await type(page, search, '(');
  check('search', 'a text is no expression', (await names(page)).length, 0);
  await type(page, search, ' ');
  await type(page, restriction, '12');
  check('restrict', 'a number', (await names(page)).length, 12);
  await type(page, restriction, '0.05');
  check('restrict', 'a fraction', (await names(page)).length, 50);
  await type(page, restriction, 'function_1\\d\\d$');
  check('restrict', 'an expression', (await names(page)).length, 100);
  await type(page, restriction, '(');
  check('restrict', 'a broken expression is refused', await page.$eval(restriction, (input) => input.ariaInvalid), 'true');
  check('restrict', 'and changes nothing', (await names(page)).length, 100);
  await page.close();
}

async function rows(browser) {
  const page = await open(browser, 'gpu');
  await page.focus('#functions .open');
  await page.keyboard.press('Enter');
  const detail = '#functions .detail';
  check('row', 'Enter opens it', (await page.$$(detail)).length, 1);
  check('row', 'it says so', await page.$eval('#functions .open', (button) => button.ariaExpanded), 'true');
  check('row', 'both histograms are drawn', (await page.$$(`${detail} figure svg .bars`)).length, 2);
  const bars = await page.$$eval(`${detail} .bars`, ([first]) => (
    [...first.querySelectorAll('title')].reduce((sum, title) => sum + Number(/: (.+) call/.exec(title.textContent)[1].replaceAll('\u202f', '')), 0)));
  const calls = await page.$eval(`${detail} table td`, (cell) => cell.textContent);
  const figures = await page.$$eval(`${detail} tbody tr`, ([first]) => first.cells[1].textContent);
  check('row', 'the bars have all calls', bars, number(figures));
  check('row', 'the head of the figures is empty in its corner', calls, '');
  check('row', 'the location is shown', (await page.$eval(`${detail} .location`, (line) => line.textContent)).includes('quickstart.rs:'));
  await page.keyboard.press('ArrowDown');
  const focused = await page.evaluate(() => document.activeElement.closest('tr').rowIndex);
  check('row', 'an arrow key goes to the next row', focused, 4);
  await page.$$eval('#functions .open', ([first]) => first.click());
  check('row', 'a click closes it', (await page.$$(detail)).length, 0);
  await page.$eval('.clock.cuda li button', (button) => button.click());
  check('row', 'a name at the top opens its row', (await page.$$(detail)).length, 1);
  await page.close();

  const window = await open(browser, 'window');
  const epoch = (await names(window)).indexOf('epoch');
  await window.$$eval('#functions .open', (buttons, epoch) => buttons[epoch].click(), epoch);
  const callees = await window.$$eval('.detail button.name', (buttons) => buttons.map((button) => button.textContent));
  check('row', 'callees are listed', callees.includes('quickstart::Trainer::forward'));
  await window.$$eval('.detail button.name', (buttons) => (
    buttons.find((button) => button.textContent === 'quickstart::Trainer::forward').click()));
  check('row', 'a callee leads to its row', (await window.$$eval('.detail .full', (all) => all.map((name) => name.textContent)))
    .includes('quickstart::Trainer::forward'));
  const callers = await window.$$eval('.detail', (all) => all.map((detail) => detail.textContent));
  check('row', 'which names its caller', callers.some((text) => /Called by.*epoch/.test(text)));
  await window.close();

  const kernels = await open(browser, 'kernels');
  const forward = (await names(kernels)).indexOf('app::forward');
  await kernels.$$eval('#functions .open', (buttons, forward) => buttons[forward].click(), forward);
  const work = await kernels.$$eval('.detail .work tbody tr', (rows) => rows.map((row) => (
    [...row.cells].map((cell) => cell.textContent))));
  check('row', 'its kernels are listed', work, [['Kernel', '100', '200 µs', '2.00 µs']]);
  await tab(kernels, 'tree');
  await type(kernels, '#tree input[type=search]', 'cutlass');
  check('icicle', 'kernels are below their functions', await kernels.$eval('#tree .status', (status) => status.textContent),
    '1 path, 50 % of the time');
  await kernels.close();
}

const data = (page, selector) => page.$eval(selector, (canvas) => ({ ...canvas.dataset }));
const tab = async (page, id) => {
  await page.$eval(`#tab-${id}`, (button) => button.click());
  await drawn(page);
};

async function icicle(browser) {
  const page = await open(browser, 'window');
  await tab(page, 'tree');
  const canvas = '#tree canvas';
  const about = () => page.$eval('#icicle-about', (line) => line.textContent);
  const all = Number((await data(page, canvas)).boxes);
  check('icicle', 'it has boxes', all >= 5);
  // Epoch is the widest root; below it are its callees.
  const box = await (await page.$(canvas)).boundingBox();
  await page.mouse.click(box.x + box.width * 0.1, box.y + 33);
  await drawn(page);
  const zoomed = (await data(page, canvas)).zoomed;
  check('icicle', 'a click zooms', zoomed.startsWith('quickstart::Trainer::'));
  const trail = await page.$$eval('.trail button', (steps) => steps.map((step) => step.textContent));
  check('icicle', 'the path is shown', trail, ['All', 'epoch', zoomed.split('::').pop()]);
  check('icicle', 'the zoomed call is described', (await about()).startsWith(zoomed));
  await page.$eval('.trail button', (step) => step.click());
  await drawn(page);
  check('icicle', 'the path leads back', Number((await data(page, canvas)).boxes), all);
  await page.focus(canvas);
  await page.keyboard.press('Escape');
  const first = await about();
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowDown');
  check('icicle', 'an arrow key goes to a callee', (await about()) !== first || first.startsWith('quickstart'));
  await page.keyboard.press('ArrowRight');
  const second = await about();
  await page.keyboard.press('Enter');
  check('icicle', 'Enter zooms', second.startsWith((await data(page, canvas)).zoomed));
  await page.keyboard.press('Backspace');
  check('icicle', 'Backspace zooms out', (await data(page, canvas)).zoomed, 'epoch');
  await type(page, '#tree input[type=search]', 'forward');
  check('icicle', 'a search says what it found', /^1 path, \d/.test(await page.$eval('#tree .status', (status) => status.textContent)));
  await page.close();
}

async function timeLine(browser) {
  const page = await open(browser, 'scopes');
  await tab(page, 'time');
  const canvas = '#time canvas';
  const span = async () => {
    await drawn(page);
    const { from, to, drawn: count, arrows } = await data(page, canvas);
    return { from: Number(from), to: Number(to), drawn: Number(count), arrows: Number(arrows) };
  };
  const whole = await span();
  check('time line', 'all is shown at first', [whole.from, whole.to], [0, 95_000_000]);
  const { width } = await (await page.$(canvas)).boundingBox();
  check('time line', 'slices within a pixel are drawn once', whole.drawn > 1000 && whole.drawn < 2 * 8 * width);
  await page.focus(canvas);
  await page.keyboard.press('w');
  const nearer = await span();
  check('time line', 'W zooms in', nearer.to - nearer.from < (whole.to - whole.from) * 0.7);
  await page.keyboard.press('d');
  const right = await span();
  check('time line', 'D moves', right.from > nearer.from && Math.abs((right.to - right.from) - (nearer.to - nearer.from)) <= 1);
  const box = await (await page.$(canvas)).boundingBox();
  const at = { x: box.x + box.width / 2, y: box.y + 60 };
  await page.mouse.move(at.x, at.y);
  await page.mouse.down();
  await page.mouse.move(at.x + 120, at.y, { steps: 4 });
  await page.mouse.up();
  const dragged = await span();
  check('time line', 'dragging moves', dragged.from < right.from);
  await page.keyboard.down('Control');
  for (let turn = 0; turn < 8; turn += 1) await page.mouse.wheel({ deltaY: -240 });
  await page.keyboard.up('Control');
  const close = await span();
  check('time line', 'the wheel zooms in with Ctrl', close.to - close.from < 200_000);
  check('time line', 'arrows lead from launches to their work', close.arrows > 0 && close.arrows < 100);
  await page.keyboard.press('0');
  check('time line', '0 shows all', (await span()).to, 95_000_000);
  const about = () => page.$eval('#time-about', (line) => line.textContent);
  await page.keyboard.press('ArrowRight');
  const first = await about();
  check('time line', 'an arrow key selects a slice', /^app::stage_\d+::run 9\.00 µs on worker 0/.test(first));
  await page.keyboard.press('ArrowRight');
  check('time line', 'and another one the next', (await about()) !== first);
  await page.keyboard.press('ArrowDown');
  const inner = await about();
  check('time line', 'down goes to a callee', inner.includes('3.50 µs on worker 0'));
  await page.keyboard.press('l');
  check('time line', 'L goes to the work', /6\.00 µs on stream 7.*launched 400 ns before/.test(await about()));
  await page.keyboard.press('l');
  check('time line', 'and back to the launch', await about(), inner);
  await page.keyboard.press('Enter');
  const slice = await span();
  check('time line', 'Enter zooms to the slice', slice.to - slice.from < 10_000);
  await type(page, '#time input[type=search]', 'stage_44::');
  check('time line', 'a search counts', /^\d.* slices/.test(await page.$eval('#time .status', (status) => status.textContent)));
  await page.keyboard.press('Enter');
  check('time line', 'and Enter goes there', (await about()).startsWith('app::stage_44::run'));
  await tab(page, 'memory');
  check('memory', 'both counters are drawn', (await page.$$('#memory svg path.stroke')).length, 2);
  await page.close();
}

/** Ranges with their sums, what a selection shows, levels, and the ways between slices and rows. */
async function timeLineOfKernels(browser) {
  const page = await open(browser, 'kernels');
  await tab(page, 'time');
  const canvas = '#time canvas';
  const text = (selector) => page.$eval(selector, (element) => element.textContent);
  check('range', 'there is none at first', await text('.range'), '');
  await page.focus(canvas);
  await page.keyboard.press('r');
  check('range', 'R shows the sums of all that is in view', await text('.range p'),
    'Range of 1.20 ms, from 0 ns. GPU 0: busy for 300 µs (25 %), idle for 450 µs (38 %), not recorded for 450 µs (38 %).');
  const strip = await page.$$eval('#strips .strip title', (titles) => titles.map((title) => title.textContent));
  check('range', 'and the strip says the same', [await text('#strips h2 span'), strip.find((title) => title.startsWith('not recorded'))],
    ['25 % busy', 'not recorded: 38 %']);
  const lists = await page.$$eval('.range table', (tables) => tables.map((table) => (
    [...table.querySelectorAll('tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent).join(' ')))));
  check('range', 'functions by their own time', lists[0].slice(0, 3),
    ['app::backward 400 µs 33 %', 'app::forward 300 µs 25 %', 'app::step 200 µs 17 %']);
  check('range', 'kernels and copies', lists[1],
    ['void cutlass::Kernel<float, 128>(float const*, float*) 200 µs 17 %', 'Memcpy HtoD 100 µs 8.3 %']);
  const box = await (await page.$(canvas)).boundingBox();
  const y = box.y + 60;
  await page.keyboard.down('Shift');
  await page.mouse.move(box.x + 300, y);
  await page.mouse.down();
  await page.mouse.move(box.x + 500, y, { steps: 4 });
  await page.mouse.up();
  await page.keyboard.up('Shift');
  await drawn(page);
  check('range', 'Shift and dragging selects one, and does not move', [
    Number(/^Range of (\d+) µs/.exec(await text('.range p'))?.[1]) < 400, (await data(page, canvas)).from], [true, '0']);
  await page.keyboard.press('Escape');
  check('range', 'Escape removes it', await text('.range'), '');

  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowDown');
  await drawn(page);
  check('time line', 'arrows lead from a selected function to its work', (await data(page, canvas)).arrows, '2');
  await page.keyboard.press('l');
  check('time line', 'a stream has no pointer in its label, and its whole name in words', /on stream 7 \(0x/.test(await text('#time-about')));
  const labels = await page.evaluate(() => {
    // What the canvas writes.
    const written = [];
    const write = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function fillText(text, ...place) {
      written.push(text);
      write.call(this, text, ...place);
    };
    const box = document.querySelector('#time .tracks');
    box.scrollTop = box.scrollHeight;
    return new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(() => done(written))); });
  });
  check('time line', 'kernels are below the scopes of their stream', labels.filter((text) => /^(stream|kernels and)/.test(text)),
    ['stream 7: scopes', 'kernels and copies']);
  check('time line', 'no label has a pointer', labels.filter((text) => /0x/.test(text)), []);
  check('time line', 'what was not recorded is said', labels.includes('kernels not recorded'));

  check('time line', 'more than forty levels are said', await text('#time .with-tip + .note'),
    'Not drawn: 1\u202f060 slices inside 40 or more others. Show 1\u202f000 levels');
  const height = () => page.$eval('#time .space', (space) => space.clientHeight);
  const before = await height();
  await page.$eval('#time .with-tip + .note button', (button) => button.click());
  check('time line', 'a thousand levels scroll', (await height()) - before, 960 * 19);

  await page.$eval('#time .tracks', (box) => { box.scrollTop = 0; });
  await page.mouse.move(box.x + 160, box.y + 56);
  await drawn(page);
  check('time line', 'the pointer shows what it is at', /^app::step 9\.00 µs$/.test(await text('#time .tip')));
  await page.mouse.move(box.x + 20, box.y + 56);
  check('time line', 'and nothing where there is none', await page.$eval('#time .tip', (tip) => tip.hidden));

  await page.focus(canvas);
  await page.keyboard.press('Escape');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('l');
  await page.$eval('#time .to-row button', (button) => button.click());
  const opened = await page.evaluate(() => document.activeElement.closest('tr')?.querySelector('bdi')?.textContent);
  check('time line', 'work without a row leads to the row of its launch', opened, 'app::forward');
  await page.$eval('.detail .to-time', (button) => button.click());
  check('time line', 'and the row leads back', [
    await page.evaluate(() => location.hash), (await text('#time-about')).startsWith('app::forward 3.00 µs on main')], ['#time', true]);
  await page.close();
}

async function deepTimeLine(browser) {
  const page = await open(browser, 'kernels');
  await tab(page, 'time');
  const text = (selector) => page.$eval(selector, (element) => element.textContent);
  await page.type('#time input[type=search]', 'level_500');
  await page.keyboard.press('Enter');
  await drawn(page);
  check('time line', 'a slice that is inside too many others is drawn when it is found', await text('#time .with-tip + .note'),
    'Not drawn: 100 slices inside 1\u202f000 or more others. ');
  await page.focus('#time canvas');
  await page.keyboard.press('ArrowRight');
  check('time line', 'and the arrow keys begin at it', (await text('#time-about')).startsWith('app::level_500 '));
  await page.close();
}

async function deepTree(browser) {
  const page = await open(browser, 'kernels');
  await tab(page, 'tree');
  const canvas = '#tree canvas';
  const click = (text) => page.$$eval('#tree .bar button', (buttons, text) => (
    buttons.find((button) => button.textContent === text).click()), text);
  await click('CPU time');
  await drawn(page);
  const height = () => page.$eval(canvas, (canvas) => canvas.clientHeight);
  check('icicle', 'all levels of a call tree stay on one screen', (await height()) <= 900 * 0.7);
  const about = () => page.$eval('#icicle-about', (line) => line.textContent);
  await page.focus(canvas);
  // What is deeper than call trees are is in a tree of its own, which may be the first.
  await page.keyboard.press('ArrowRight');
  for (let root = 0; root < 9 && !(await about()).startsWith('app::level_0 '); root += 1) {
    await page.keyboard.press('ArrowRight');
  }
  for (let level = 0; level < 505; level += 1) await page.keyboard.press('ArrowDown');
  await drawn(page);
  check('icicle', 'the keyboard reaches all of them', (await about()).startsWith('app::level_505 '));
  check('icicle', 'and they stay there', (await height()) <= 900 * 0.7);
  const steps = await page.$$eval('.trail button', (steps) => steps.map((step) => step.textContent));
  check('icicle', 'the path says what it leaves out', [steps.length, /^… [\d\u202f]+ callers …$/.test(steps[1])], [8, true]);
  await click('CUDA time');
  await click('Upside down');
  await page.keyboard.press('ArrowDown');
  check('icicle', 'upside down, functions come first', await about(),
    'void cutlass::Kernel<float, 128>(float const*, float*) 200 µs (50 %) of own time, 100 calls');
  await page.keyboard.press('ArrowDown');
  check('icicle', 'and their callers are below', await about(),
    'app::forward 200 µs (50 %) of own time in void cutlass::Kernel<float, 128>(float const*, float*) on this path, 100 calls');
  await click('Upside down');
  await page.keyboard.press('ArrowDown');
  check('icicle', 'and back', (await about()).startsWith('app::step 400 µs (100 %) with its callees'));
  await page.close();
}

async function hostileNames(browser) {
  const page = await open(browser, 'hostile');
  for (const id of ['functions', 'comparison', 'tree', 'time', 'memory', 'run']) await tab(page, id);
  await tab(page, 'functions');
  await page.$$eval('#functions .open', (buttons) => buttons.forEach((button) => button.click()));
  const shown = await page.$$eval('.detail .full', (all) => all.map((name) => name.textContent));
  check('hostile', 'names are shown as they are', shown.includes("</script><script>document.title = 'executed'</script>"));
  check('hostile', 'none of them is executed', await page.evaluate(() => document.title !== 'executed'));
  check('hostile', 'none of them is an element', (await page.$$('img, main script, b b')).length, 0);
  check('hostile', 'none changes the direction of others', shown.some((name) => name.includes('\u202e')), false);
  check('hostile', 'the body is not wider than the window',
    await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await tab(page, 'comparison');
  const ratios = await page.$$eval('#comparison tbody tr', (rows) => rows.map((row) => row.cells[5].textContent));
  check('comparison', 'names of both runs have a ratio', ratios.filter((text) => /^\d/.test(text)).length, 12);
  const changes = () => page.$$eval('#comparison tbody tr', (rows) => rows.map((row) => [row.cells[10].textContent.trim(), row.cells[10].className]));
  const sizes = (await changes()).map(([text]) => (text === '' ? 0 : number(text.replace(/^[+−]| [▾▴]$/g, ''))));
  check('comparison', 'the largest change comes first', sizes.length > 5 && isFalling(sizes));
  check('comparison', 'and says which direction is good', (await changes()).every(([text, name]) => (
    name === { '+': 'worse', '−': 'better' }[text[0]] || !/^[+−]/.test(text))));
  const [without] = await changes();
  await page.$$eval('#comparison thead button', (buttons) => buttons[10].click());
  await page.$$eval('#comparison thead button', (buttons) => buttons[10].click());
  check('comparison', 'script keeps the order and the text', (await changes())[0], without);
  await page.setViewport({ width: 360, height: 900 });
  await drawn(page);
  check('comparison', 'the column of the order is visible in a narrow window', await page.$eval('#comparison th[aria-sort]', (header) => (
    header.getBoundingClientRect().width > 20 && header.getBoundingClientRect().right <= innerWidth)));
  await page.$$eval('#comparison thead button', (buttons) => buttons[3].click());
  const means = await page.$$eval('#comparison tbody tr', (rows) => rows.map((row) => row.cells[3].textContent));
  check('comparison', 'a column sorts', isFalling(means.filter((text) => text !== '').map(number)));
  await page.close();
}

async function accessibility(browser) {
  for (const theme of ['light', 'dark']) {
    for (const name of ['window', 'hostile', 'cpu', 'kernels', 'gpus']) {
      const page = await open(browser, name, { theme, bypass: true });
      await page.evaluate(axe);
      for (const view of await page.$$eval('[role=tab]', (tabs) => tabs.map((tab) => tab.id.slice(4)))) {
        await tab(page, view);
        if (view === 'functions') await page.$$eval('#functions .open', ([first]) => first.click());
        if (view === 'time') {
          await page.focus('#time canvas');
          await page.keyboard.press('r');
          await page.keyboard.press('ArrowRight');
        }
        const { violations, passes } = await page.evaluate(() => globalThis.axe.run(document, {
          runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
        }));
        const found = violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 160)} ${nodes[0].any[0]?.message ?? ''}`);
        check(`${name}, ${theme}, ${view}`, 'accessibility', found, []);
        check(`${name}, ${theme}, ${view}`, 'contrast is checked', passes.some(({ id }) => id === 'color-contrast'));
      }
      await page.close();
    }
  }
}

async function widths(browser) {
  for (const width of WIDTHS) {
    for (const name of ['window', 'hostile', 'names', 'scopes', 'kernels', 'gpus']) {
      const page = await open(browser, name, { width });
      for (const view of await page.$$eval('[role=tab]', (tabs) => tabs.map((tab) => tab.id.slice(4)))) {
        await tab(page, view);
        if (view === 'functions') await page.$$eval('#functions .open', ([first]) => first.click());
        const [found, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
        check(`${name}, ${view}, ${width} px`, 'nothing is wider than the window', found <= room);
      }
      await page.close();
    }
  }
}

async function shell(browser) {
  const page = await open(browser, 'window');
  await page.focus('[role=tab]');
  await page.keyboard.press('ArrowRight');
  const selected = () => page.$eval('[aria-selected=true]', (tab) => tab.id);
  check('tabs', 'an arrow key goes to the next view', await selected(), 'tab-tree');
  check('tabs', 'the address keeps the view', await page.evaluate(() => location.hash), '#tree');
  await page.keyboard.press('End');
  check('tabs', 'End goes to the last view', await selected(), 'tab-run');
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await page.click('#theme');
  check('theme', 'light is chosen', await background(), light);
  await page.click('#theme');
  check('theme', 'dark is dark', (await background()) !== light);
  await page.evaluate(() => {
    globalThis.copied = [];
    navigator.clipboard.writeText = async (text) => { globalThis.copied.push(text); };
  });
  await page.click('#copy');
  const [copied] = await page.evaluate(() => globalThis.copied);
  check('copy', 'the verdict and the table are copied',
    /On the CPU,/.test(copied) && /quickstart::Trainer::forward/.test(copied) && /Self %/.test(copied));
  await page.close();
}

const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'page-'));
const browser = await puppeteer.launch({
  executablePath: CHROMIUM,
  headless: true,
  userDataDir: profile,
  protocolTimeout: 300_000,
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--no-first-run',
    '--host-resolver-rules=MAP * ~NOTFOUND'],
});
try {
  for (const part of [tableWithoutScript, sorting, columns, columnsWithoutScript, searching, rows, icicle, deepTree, timeLine, timeLineOfKernels, deepTimeLine, hostileNames, shell, accessibility,
    widths]) {
    await part(browser);
  }
} finally {
  await browser.close();
  fs.rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}
console.log(failed ? `${failed} of ${checks} checks fail` : `${checks} checks hold`);
process.exit(failed ? 1 : 0);
