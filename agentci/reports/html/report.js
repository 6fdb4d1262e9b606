// The shell of the page: views by address, keys, colours.

const TABS = [
  ['/', 'Overview', null],
  ['/evaluators', 'Evaluators', (DATA.columns ?? []).length],
  ['/compare', HAS_BASELINE ? 'Compare' : 'Answers', null],
  ['/messages', 'Messages', (DATA.messages ?? []).length + (DATA.policy?.changes.length ?? 0)],
];
const KEYS = [
  ['j k', 'next, previous row; in a case: next, previous regression'],
  ['Enter', 'open the case'],
  ['[ ]', 'previous, next case'],
  ['/', 'search'],
  ['n', 'new failures only'],
  ['x', 'compare with expected, baseline, both, nothing'],
  ['e c m', 'evaluators, comparison or answers, messages'],
  ['t', 'light or dark'],
  ['Esc', 'back to the list'],
];
const THEME = 'agentci-theme';

const main = make('main', { id: 'main', tabindex: -1 });
const tabs = make('nav.tabs', { label: 'Views' });
const help = make(
  'dialog',
  { 'aria-labelledby': 'keys' },
  make('h2', { id: 'keys' }, 'Keys'),
  terms('dl', KEYS.map(([keys, what]) => [keys.split(' ').map((key) => [make('kbd', key), ' ']), what])),
  make('form', { method: 'dialog' }, make('button.btn', 'Close')),
);

function overviewView() {
  if (DATA.verdict.is_invalid || !CASES.length) {
    return [verdictView(), messagesCard()];
  }
  // A narrow screen has room for what got worse and why, which comes first.
  if (isNarrow.matches) return [verdictView(), changesView(), tilesView(), matrixView(here.params)];
  return [verdictView(), tilesView(), changesView(), matrixView(here.params)];
}

const VIEW_MAKERS = {
  overview: overviewView,
  case: () => caseView(here.id, here.params),
  evaluators: evaluatorsView,
  compare: compareView,
  messages: messagesView,
};

/** Show what the address names. */
function show() {
  const before = show.last;
  here = readHash(location.hash);
  if (isList()) listHash = location.hash || '#/';
  if (isList() || here.view === 'compare') backHash = location.hash || '#/';
  else if (!shownCases.length) shownCases = selectCases([...CASES], readSelection({}));
  const focus = rememberFocus();
  const top = scrollY;
  main.replaceChildren();
  append(main, VIEW_MAKERS[here.view]());
  const isOther = before !== undefined && before !== `${here.view} ${here.id}`;
  show.last = `${here.view} ${here.id}`;
  document.title = titleOf();
  showTabs();
  paintRows(true);
  if (isOther) enterView(before);
  else {
    scrollTo(0, top);
    focus();
  }
  document.querySelector('.check.chosen')?.scrollIntoView({ block: 'nearest' });
  // A link to some of the cases leads to the table, which is below the cards.
  const { like } = here.params;
  const isNew = before === undefined || (isOther && !before.startsWith('case ')) || like !== show.like;
  if (here.view === 'overview' && Object.keys(here.params).length && isNew) document.querySelector('.controls')?.scrollIntoView();
  show.like = like;
}

/** Returns what gives the focus back to the control that had it, with the caret of a field. */
function rememberFocus() {
  const { id, selectionStart, dataset } = document.activeElement ?? {};
  return () => {
    const attribute = ['filter', 'with'].find((name) => dataset?.[name]);
    const found = id ? document.getElementById(id) : attribute && document.querySelector(`[data-${attribute}="${CSS.escape(dataset[attribute])}"]`);
    if (!found || found === main) return;
    found.focus({ preventScroll: true });
    if (typeof selectionStart === 'number') found.setSelectionRange?.(selectionStart, selectionStart);
  };
}

/** Focus the heading of a view; on the way back, the case that was open. */
function enterView(before) {
  const opened = (isList() || here.view === 'compare') && before.startsWith('case ');
  if (opened) {
    scrollTo(0, show.listTop ?? 0);
    paintRows(true);
    const each = caseNamed(before.slice(5));
    const link = each && document.querySelector(`main [data-case="${each.index}"]`);
    if (link) return link.focus({ preventScroll: true });
  } else scrollTo(0, 0);
  const heading = main.querySelector('h1');
  heading?.setAttribute('tabindex', '-1');
  return heading?.focus({ preventScroll: true });
}

function titleOf() {
  const name = here.view === 'case' ? plain(here.id) : plain(DATA.verdict.title);
  return `${name} - agentci`;
}

function showTabs() {
  const current = here.view === 'overview' || here.view === 'case' ? '/' : `/${here.view}`;
  tabs.replaceChildren(
    ...TABS.map(([path, label, amount]) =>
      make('a', { href: `#${path}`, 'aria-current': path === current ? 'page' : null }, label, amount ? make('span.count', count(amount)) : null),
    ),
  );
}

function readTheme() {
  try {
    return localStorage.getItem(THEME);
  } catch {
    // A page without storage.
    return null;
  }
}

function flipTheme() {
  const theme = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(THEME, theme);
  } catch {
    // Only for this page, then.
  }
}

const wantsDark = matchMedia('(prefers-color-scheme: dark)');
function applyTheme() {
  document.documentElement.dataset.theme = readTheme() ?? (wantsDark.matches ? 'dark' : 'light');
}

function stepCase(by) {
  const at = shownCases.findIndex(({ name }) => name === here.id);
  const to = at < 0 ? null : shownCases[at + by];
  if (to) go(caseHashLikeThis(to));
}

/** The next or previous row, case of the comparison, or on the page of a case one that got worse. */
function stepDown(by) {
  if (here.view !== 'case') return isList() ? moveCursor(by) : stepLink(by);
  const each = caseNamed(here.id);
  const to = each && nextWorse(each, by);
  return to && go(caseHashLikeThis(to));
}

/** Focus the next or previous case of the comparison. */
function stepLink(by) {
  const links = [...document.querySelectorAll('.beside [data-case]')];
  const at = links.indexOf(document.activeElement);
  links[at < 0 ? 0 : Math.max(0, at + by)]?.focus();
}

function cycleReference() {
  const each = caseNamed(here.id);
  if (here.view !== 'case' || !each) return;
  const references = referencesOf(contentOf(each).run);
  const names = Object.keys(references);
  const next = names[(names.indexOf(chooseReference(each, references, here.params)) + 1) % names.length];
  go(caseHash(each, null, { ...here.params, with: next }));
}

const isList = () => here.view === 'overview';
const ACTIONS = {
  j: () => stepDown(1),
  k: () => stepDown(-1),
  ArrowDown: () => isList() && cursor >= 0 && moveCursor(1),
  ArrowUp: () => isList() && cursor >= 0 && moveCursor(-1),
  Enter: () => isList() && listed[cursor] && go(caseHash(listed[cursor])),
  '[': () => stepCase(-1),
  ']': () => stepCase(1),
  '/': () => {
    if (!document.getElementById('search')) {
      history.pushState(null, '', listHash);
      show();
    }
    document.getElementById('search')?.focus();
  },
  n: () => go(writeHash('/', { f: isList() && here.params.f === 'new' ? 'all' : 'new' })),
  x: cycleReference,
  e: () => go('#/evaluators'),
  c: () => go('#/compare'),
  m: () => go('#/messages'),
  t: flipTheme,
  Escape: () => !isList() && go(here.view === 'case' ? backHash : listHash),
  '?': () => help.showModal(),
};

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  const field = event.target.closest('input, select, textarea');
  if (field) {
    if (event.key === 'Escape') field.blur();
    return;
  }
  if (event.key === 'Enter' && event.target.closest('a, button, summary')) return;
  const isArrow = event.key.startsWith('Arrow');
  if (!Object.hasOwn(ACTIONS, event.key) || (isArrow && !(isList() && cursor >= 0))) return;
  if (event.key !== 'Enter' || isList()) event.preventDefault();
  ACTIONS[event.key]();
}

document.getElementById('loading').remove();
applyTheme();
wantsDark.addEventListener('change', applyTheme);
document.body.prepend(
  make('a.skip', { href: '#main', onclick: (event) => { event.preventDefault(); main.focus(); } }, 'Skip to the content'),
  make(
    'header.bar',
    make(
      'div',
      make('a.brand', { href: '#/', class: DATA.verdict.status }, make('i'), make('span', 'agentci')),
      tabs,
      make('div.tools', make('button.btn.theme', { onclick: flipTheme }, make('span', 'Light / dark')), make('button.btn.keys', { onclick: () => help.showModal() }, 'Keys ', make('kbd', '?'))),
    ),
  ),
  main,
  make('footer', make('span', `agentci ${DATA.version}`), make('span', CONFIGS.slice(0, 3).join(', '))),
  help,
);
addEventListener('hashchange', show);
// Text that is cut where it has no room is its own title.
addEventListener('pointerover', ({ target }) => {
  const { textOverflow, webkitLineClamp } = getComputedStyle(target);
  const isCut = textOverflow === 'ellipsis' ? target.scrollWidth > target.clientWidth : webkitLineClamp !== 'none' && target.scrollHeight > target.clientHeight;
  if (isCut && !target.closest('[title]')) target.title = target.innerText;
});
addEventListener('keydown', press);
addEventListener('scroll', () => {
  if (isList() || here.view === 'compare') show.listTop = scrollY;
  if (isList()) paintRows();
}, { passive: true });
addEventListener('resize', () => paintRows(true));
for (const kind of ['beforeprint', 'afterprint']) {
  addEventListener(kind, () => {
    isPrinted = kind === 'beforeprint';
    if (isPrinted) document.documentElement.dataset.theme = 'light';
    else applyTheme();
    show();
  });
}
for (const each of [isNarrow, isStacked]) each.addEventListener('change', show);
show();
