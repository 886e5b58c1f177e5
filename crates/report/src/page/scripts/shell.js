// The parts around the views: tabs, the theme, the clipboard.

const THEMES = ['system', 'light', 'dark'];
const THEME_KEY = 'profiler-page-theme';

/** Reads or writes a setting. A browser may refuse that to a file. @param {string} [value] */
function storedTheme(value) {
  try {
    if (value !== undefined) localStorage.setItem(THEME_KEY, value);
    return localStorage.getItem(THEME_KEY) ?? 'system';
  } catch {
    return value ?? 'system';
  }
}

/** @param {string} theme */
function applyTheme(theme) {
  document.documentElement.style.colorScheme = theme === 'system' ? '' : theme;
  dispatchEvent(new Event('themechange'));
}

function themeButton() {
  const label = (theme) => `Theme: ${theme}`;
  let theme = storedTheme();
  applyTheme(theme);
  const button = el('button', { type: 'button', id: 'theme', click: () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    storedTheme(theme);
    applyTheme(theme);
    button.textContent = label(theme);
  } }, label(theme));
  return button;
}

/**
 * Copies the verdict and the table as text. Without access to the clipboard, selects the text instead.
 * @param {string} text
 */
function copyButton(text) {
  const verdict = [...document.querySelectorAll('#verdict p')].map((line) => line.textContent).join('\n');
  const content = `${document.title}\n\n${verdict}\n\n${text}`;
  const status = el('span', { class: 'silent', role: 'status' });
  const label = 'Copy as text';
  const say = (message) => {
    status.textContent = message;
    button.textContent = message;
    setTimeout(() => { button.textContent = label; }, 2000);
  };
  const button = el('button', { type: 'button', id: 'copy', click: async () => {
    try {
      await navigator.clipboard.writeText(content);
      say('Copied');
    } catch {
      say(copyBySelection(content) ? 'Copied' : 'Not copied: the browser refuses');
    }
  } }, label);
  return el('span', {}, button, status);
}

/** Copies with the older interface, which works in files too. @param {string} content */
function copyBySelection(content) {
  const area = /** @type {HTMLTextAreaElement} */ (el('textarea', { 'aria-label': 'Text to copy' }));
  area.value = content;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand('copy');
  area.remove();
  return isCopied;
}

/** Shows one view at a time, chosen by tabs; the address keeps the choice. */
class Tabs {
  constructor() {
    const main = byId('views');
    this.views = /** @type {HTMLElement[]} */ ([...main.querySelectorAll('.view')]);
    /** @type {Object<string, () => void>} called when a view is shown */
    this.onShow = {};
    this.tabs = this.views.map((view) => this.tab(view));
    main.classList.add('tabbed');
    main.prepend(el('div', { role: 'tablist', 'aria-label': 'Views' }, ...this.tabs));
    addEventListener('hashchange', () => this.showNamed(location.hash.slice(1)));
    this.show(this.views[0]);
    this.showNamed(location.hash.slice(1));
  }

  /** @param {HTMLElement} view */
  tab(view) {
    const title = view.querySelector('h2')?.textContent ?? view.id;
    set(view, { role: 'tabpanel', 'aria-labelledby': `tab-${view.id}` });
    return el('button', {
      type: 'button', role: 'tab', id: `tab-${view.id}`, 'aria-controls': view.id,
      click: () => this.choose(view), keydown: (event) => this.move(event, view),
    }, title);
  }

  /** @param {HTMLElement} chosen */
  show(chosen) {
    this.views.forEach((view, index) => {
      const isChosen = view === chosen;
      view.hidden = !isChosen;
      set(this.tabs[index], { 'aria-selected': String(isChosen), tabindex: isChosen ? 0 : -1 });
    });
    this.onShow[chosen.id]?.();
  }

  /** @param {HTMLElement} view */
  choose(view) {
    this.show(view);
    history.replaceState(null, '', `#${view.id}`);
  }

  /** @param {string} id */
  showNamed(id) {
    const view = this.views.find((view) => view.id === id);
    if (view) this.show(view);
  }

  /** @param {KeyboardEvent} event @param {HTMLElement} view */
  move(event, view) {
    const last = this.views.length - 1;
    const at = this.views.indexOf(view);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last }[event.key];
    if (next === undefined) return;
    const index = (next + this.views.length) % this.views.length;
    this.choose(this.views[index]);
    this.tabs[index].focus();
    event.preventDefault();
  }
}

/** Makes the names at the top lead to their rows. @param {FunctionTable} table @param {Tabs} tabs */
function linkNames(table, tabs) {
  const byText = new Map(table.rows.map(({ name }) => [nameElement(name).textContent, name]));
  for (const bdi of document.querySelectorAll(':is(.clock, .parts) li > bdi')) {
    const name = byText.get(bdi.textContent);
    if (name === undefined) continue;
    bdi.replaceWith(el('button', { type: 'button', class: 'name', click: () => {
      tabs.choose(byId('functions'));
      table.show(name);
    } }, nameElement(name)));
  }
}

async function start() {
  const tools = byId('tools');
  tools.append(themeButton());
  const data = await unpack();
  const summary = data.summary && readSummary(data.summary, data.work);
  const table = summary?.rows.length > 0 ? new FunctionTable(byId('functions'), summary) : null;
  if (summary) tools.prepend(copyButton(summary.text));
  if (data.comparison) new Comparison(byId('comparison'), data.comparison);
  if (data.tree) new Icicle(data.tree);
  const hasRow = (name) => table?.rowOf(name) !== undefined;
  const showRow = (name) => {
    tabs.choose(byId('functions'));
    table?.show(name);
  };
  const line = data.time_line?.tracks.length > 0 ? new TimeLine(data.time_line, hasRow, showRow) : null;
  if (summary && line) {
    summary.onTimeLine = (name) => (line.hasName(name) ? () => {
      tabs.choose(byId('time'));
      line.show(0, line.window.duration);
      line.revealName(name);
      line.canvas.focus();
    } : null);
  }
  const counters = data.time_line?.counters.filter(({ value }) => value.length > 0) ?? [];
  if (counters.length > 0) memoryView(counters, data.time_line.duration_ns);
  const tabs = new Tabs();
  if (table) linkNames(table, tabs);
  document.documentElement.dataset.ready = 'true';
}

start().catch((error) => {
  const message = `The rest of this page needs a newer browser, or the file is damaged: ${error.message}`;
  byId('views').prepend(el('p', { class: 'note', role: 'alert' }, message));
  throw error;
});
