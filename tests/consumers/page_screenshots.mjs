// Takes the pictures of the page for the README, of a page that quickstart, built with optimization, wrote on a simulated GPU with
// its CUPTI. DRIVER is a folder with the simulated driver as `libcuda.so.1`. Kernels take 20 times as long as otherwise, so that
// pictures taken on a busy machine show a busy GPU too; the README says that they are slow:
//
//     export SIMULATED_DRIVER='log off; kernel affine 160us; kernel softmax 80us; kernel errors 80us; kernel gradient 240us;
//         kernel pass_back 160us; kernel descend 60us'
//     LD_LIBRARY_PATH=DRIVER PROFILER_CUPTI_LIBRARY=DRIVER/libcuda.so.1 quickstart --out DIR --trace
//     CHROMIUM=PROGRAM NODE_MODULES=FOLDER node page_screenshots.mjs DIR/window.html docs/images

import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const { CHROMIUM = 'chromium', NODE_MODULES } = process.env;
const puppeteer = createRequire(path.join(NODE_MODULES, 'x.js'))('puppeteer-core');
const [file, folder] = process.argv.slice(2);

/** Lets the page draw what was asked for. */
const drawn = (page) => page.evaluate(() => new Promise((done) => {
  requestAnimationFrame(() => requestAnimationFrame(() => done()));
}));

async function open(browser, view, height) {
  const page = await browser.newPage();
  await page.setViewport({ width: 1200, height });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'light' }]);
  await page.goto(`${pathToFileURL(path.resolve(file)).href}${view && `#${view}`}`);
  await page.waitForFunction(() => document.documentElement.dataset.ready === 'true');
  await drawn(page);
  return page;
}

/** Takes a picture of a part of a page, with a margin. */
async function shoot(page, name, selector) {
  await drawn(page);
  const margin = 14;
  // A box is where the window is scrolled to, and a clip is a part of the whole page.
  const clip = await page.$eval(selector, (element, margin) => {
    const { x, y, width, height } = element.getBoundingClientRect();
    return { x: Math.max(x + scrollX - margin, 0), y: Math.max(y + scrollY - margin, 0), width: width + 2 * margin,
      height: height + 2 * margin };
  }, margin);
  await page.screenshot({ path: path.join(folder, name), clip });
  console.log(`${name}: ${fs.statSync(path.join(folder, name)).size} bytes`);
}

const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'page-'));
const browser = await puppeteer.launch({
  executablePath: CHROMIUM, headless: true, userDataDir: profile,
  args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--host-resolver-rules=MAP * ~NOTFOUND'],
});
try {
  fs.mkdirSync(folder, { recursive: true });
  const first = await open(browser, '', 900);
  const height = 14 + await first.$eval('#clocks', (clocks) => clocks.getBoundingClientRect().bottom);
  await first.screenshot({ path: path.join(folder, 'page.png'), clip: { x: 0, y: 0, width: 1200, height } });

  const time = await open(browser, 'time', 900);
  await time.focus('#time canvas');
  // To a slice of the first stream in the middle of the window, and out again until its neighbours are in view.
  await time.$eval('#time input', (input) => {
    input.value = 'forward';
    input.dispatchEvent(new Event('input'));
  });
  await time.focus('#time input');
  for (let slice = 0; slice < 600; slice += 1) await time.keyboard.press('Enter');
  await time.$eval('#time input', (input) => {
    input.value = '';
    input.dispatchEvent(new Event('input'));
  });
  await time.focus('#time canvas');
  await time.keyboard.press('l');
  await time.keyboard.press('Enter');
  for (let step = 0; step < 5; step += 1) await time.keyboard.press('s');
  await shoot(time, 'page-time-line.png', '#time');

  const tree = await open(browser, 'tree', 900);
  await tree.focus('#tree canvas');
  await tree.keyboard.press('ArrowDown');
  await shoot(tree, 'page-call-tree.png', '#tree');
} finally {
  await browser.close();
  fs.rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}
