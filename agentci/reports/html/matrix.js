// The table of cases and evaluators, with its filters, order and groups.

// Rows beyond this number are only made while they are in view.
const MAX_ROWS = 120;
const EXTRA_ROWS = 12;
// Pixels, as in the style sheet: of a case, on a narrow screen, and of a group's heading.
const ROW_HEIGHT = 52;
const NARROW_ROW_HEIGHT = 94;
const GROUP_HEIGHT = 36;
// Of more columns, those in which nothing differs from the baseline are joined.
const FEW_COLUMNS = 5;
// Those beyond are on the pages of the cases.
const MAX_COLUMNS = 30;

const isNarrow = matchMedia('screen and (max-width: 45rem)');
// The verdicts of a case are not beside its conversation: failed ones come before it.
const isStacked = matchMedia('screen and (max-width: 64rem)');
let cursor = -1;
// The cases of the rows, in order: with groups, a case may have several.
let listed = [];
let paintRows = () => {};
// On paper, all rows are in view; without a choice, those of cases that passed as before are left out.
let isPrinted = false;

/** The columns, those with more problems first, advisory ones last; those whose cells all passed as in the baseline may be joined in one. */
function chooseColumns(found, { evaluator, sort, columns }) {
  const problems = new Map(COLUMNS.map((each) => [each, each.name === evaluator ? Infinity : each.removed + each.checks.filter(isProblem).reduce((sum, check) => sum + (check.evaluator.required ? 1 : 1e-6), 0)]));
  const sorted = [...COLUMNS].sort((a, b) => (problems.get(a) < problems.get(b)) - (problems.get(b) < problems.get(a)));
  const isOther = ({ status, turned, change }) => status !== 'passed' || turned || Math.abs(change) >= MIN_CHANGE;
  const other = new Set(found.flatMap(({ checks, removed }) => [...checks, ...removed].filter(isOther).map(({ column }) => column)));
  const { own = [], same = [] } = Object.groupBy(sorted, ({ name, index }) => (other.has(index) || name === evaluator || sort === `e${index}` ? 'own' : 'same'));
  const most = isNarrow.matches ? FEW_COLUMNS : MAX_COLUMNS;
  if (found.some(({ checks }) => checks.length) && COLUMNS.length > FEW_COLUMNS && same.length > 1 && own.length < most) {
    const isOpen = columns === 'all' && !isNarrow.matches;
    return [...(isOpen ? sorted.slice(0, most) : own), { joined: same, isOpen }];
  }
  const shown = sorted.slice(0, most);
  // An evaluator with errors is among them.
  const errored = sorted.find(({ checks }) => checks.some(({ status }) => status === 'errored'));
  return !errored || shown.includes(errored) ? shown : [...shown.slice(0, -1), errored];
}

function matrixView(params) {
  const selection = readSelection(params);
  const set = (key, value) => go(writeHash('/', { ...params, [key]: value }));
  const selected = selectCases([...CASES], selection);
  const isReduced = isPrinted && selection.filter === 'all' && !selection.query;
  const found = isReduced ? selected.filter(needsLook) : selected;
  const items = groupCases(found, selection.group, selection.evaluator, DATA.cause_names);
  listed = items.filter((each) => !each.members);
  shownCases = [...new Set(listed)];
  cursor = Math.min(cursor, listed.length - 1);
  const columns = chooseColumns(found, selection);
  const amount = columns.reduce((sum, { joined, isOpen }) => sum + (joined ? !isOpen && joined.length : 1), 0);
  const body = make('tbody');
  const view = make(
    'div.scroll',
    { tabindex: 0, role: 'region', label: 'Scores of all cases', onscroll: () => paintRows() },
    make(
      'table.matrix',
      { 'aria-rowcount': items.length + 1, style: { '--columns': columns.length - (columns.at(-1)?.isOpen ? 0.6 : 0) } },
      make('thead', make('tr', searchHead(selection, found), columns.map((each) => (each.joined ? joinedHead(each, found, set) : columnHead(each, selection, set))), amountHeads(selection, set))),
      found.length ? body : null,
    ),
  );
  const foot = quiet();
  paintRows = makePainter(items, columns, body, view, foot);
  return make(
    'section.card',
    { 'aria-labelledby': 'matrix' },
    make('h2.unseen', { id: 'matrix' }, 'Cases and evaluators'),
    controlsView(selection, '/', MATRIX_FILTERS),
    amount < COLUMNS.length && make('p.hint', `${count(amount)} of ${countOf(COLUMNS.length, 'evaluator')}, those with failures first.`),
    make('p.unseen', { role: 'status' }, `${countOf(found.length, 'case')} shown`),
    make('div.sides', view),
    found.length ? null : emptyView(selection),
    found.length < selected.length && make('p.hint', `${countOf(selected.length - found.length, 'case')} that passed or were skipped as before: not printed.`),
    make('div.foot', HAS_BASELINE && 'A coloured edge marks a status that changed. ', foot),
  );
}

function needsLook({ status, state, facts, large }) {
  return status === 'failed' || status === 'errored' || state === 'lost' || state === 'lower_score' || facts || large;
}

function emptyView({ query }) {
  return make(
    'div.none',
    make('p', query ? `No case matches \u201c${query}\u201d.` : 'No case matches.'),
    make('button.btn', { onclick: () => go('#/') }, 'Show all cases'),
  );
}

/** What filters are about; that of others are changes. */
const SUBJECTS = {
  Status: ['failed', 'error', 'skipped', 'passed'],
  'Calls and answers': ['answer', 'calls', 'tools'],
  Amounts: ['slow', 'costly', 'dearer', 'large_ms', 'large_tokens', 'large_usd'],
};
const MATRIX_FILTERS = Object.keys(FILTERS).filter((key) => key !== 'worse' && key !== 'better');

/** The filters, orders and groups of a list of cases. */
function controlsView(selection, path, filters) {
  const set = (key, value) => go(writeHash(path, { ...here.params, [key]: value }));
  const own = searchCases(CASES, selection);
  const subject = (key) => Object.keys(SUBJECTS).find((name) => SUBJECTS[name].includes(key)) ?? (HAS_BASELINE ? 'Changes' : 'Cases');
  const amounts = Object.fromEntries(filters.map((key) => [key, own.filter(FILTERS[key][1]).length]));
  const shown = filters.filter((key) => (amounts[key] && !key.startsWith('large_') && !(HAS_BASELINE && (key === 'failed' || key === 'error'))) || key === 'all' || key === selection.filter);
  const groups = Object.entries(GROUPS).filter(
    ([key]) =>
      (key !== 'tag' || CASES.some(({ tags }) => tags.length)) &&
      (key !== 'config' || CONFIGS.length > 1) &&
      (key !== 'state' || HAS_BASELINE) &&
      (key !== 'cause' || CASES.some(({ checks }) => checks.some(({ cause }) => cause !== undefined))),
  );
  const orders = Object.entries(ORDERS)
    .filter(([key, [, , name]]) => (name ? CASES.some((each) => increase(each, name)) : key !== 'cost' || shownAmounts().some(([each]) => each === key)))
    .map(([key, [label]]) => [key, label]);
  if (/^e\d+$/.test(selection.sort)) {
    orders.push([selection.sort, `Lowest ${COLUMNS[selection.sort.slice(1)]?.name ?? 'score'}`]);
  }
  const names = COLUMNS.map(({ name, checks }) => [name, checks.length ? name : `${name} (removed)`]);
  return make(
    'div.controls',
    make(
      'div.chips',
      { role: 'group', label: 'Show' },
      [...Map.groupBy(shown, subject)].map(([name, keys]) =>
        make(
          'div',
          { role: 'group', label: name },
          keys.map((key) => {
            const [label, , status, limits] = FILTERS[key];
            return make(
              'button.chip',
              {
                'aria-pressed': String(key === selection.filter && !selection.like),
                'data-filter': key,
                title: limits,
                onclick: () => go(writeHash(path, { ...here.params, like: '', f: key })),
              },
              status && make('i', { class: status }),
              label,
              ' ',
              make('b', count(amounts[key])),
            );
          }),
        ),
      ),
      selection.like
        ? make('button.chip', { 'aria-pressed': 'true', onclick: () => set('like', '') }, 'Same failures ', make('b', '\u00d7'), unseen('remove'))
        : null,
    ),
    make(
      'div.find',
      path === '/' ? null : searchField(selection, path),
      COLUMNS.length > 1 && choice('e', 'Evaluator', selection.evaluator, [['', 'All evaluators'], ...names], set),
      choice('sort', 'Sort', selection.sort, orders, set),
      path === '/' && groups.length > 1 && choice('group', 'Group', selection.group, groups, set),
    ),
  );
}

function choice(key, label, value, options, set) {
  return make(
    'select',
    { label, id: `choose-${key}`, onchange: (event) => set(key, event.target.value) },
    options.map(([name, text]) => make('option', { value: name, selected: name === value }, text)),
  );
}

function searchField({ query }, path) {
  const { view } = here;
  const field = make('input', {
    id: 'search',
    type: 'search',
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: 'Search cases and answers ( / )',
    label: 'Search cases, questions and answers; #tag for a tag',
    value: searchField.typed ?? query,
    oninput: () => {
      clearTimeout(searchField.timer);
      // The view may be shown again before.
      searchField.typed = field.value;
      // Another control may be used before: its value stays.
      searchField.timer = setTimeout(() => {
        searchField.typed = null;
        if (here.view === view) go(writeHash(path, { ...here.params, q: field.value }));
      }, 120);
    },
  });
  if (isReading(query)) readAnswers(show);
  return field;
}

/** Whether the answers, which a search looks at, are still being read. */
function isReading(query) {
  return query && CASES.some((each) => each.answers === undefined);
}

function searchHead(selection, found) {
  return make(
    'td.search',
    searchField(selection, '/'),
    make(
      'div',
      make('b', countOf(found.length, 'case')),
      found.length < CASES.length && quiet(` of ${count(CASES.length)}`),
      isReading(selection.query) && quiet(' searching answers\u2026'),
    ),
  );
}

/** On paper, a table has its head on each page, without the buttons in it. */
function headElement() {
  return isPrinted ? 'b' : 'button';
}

function columnHead(column, { sort }, set) {
  const key = `e${column.index}`;
  const totals = totalsOf(column.checks.map(({ status }) => status));
  const { criterion, required } = column.checks[0]?.evaluator ?? {};
  return make(
    'th',
    { scope: 'col', 'aria-sort': sort === key ? 'ascending' : null },
    make(
      headElement(),
      { id: `by-${key}`, title: `${column.name}: ${criterion ?? 'only the baseline has its checks'}\nSort by score`, onclick: () => set('sort', sort === key ? '' : key) },
      nameOf(column.name),
      sort === key ? ' \u2191' : '',
    ),
    shareBar({ ...totals, skipped: 0 }),
    isEmpty(totals) && pill('errored', column.checks.length ? 'nothing evaluated' : 'removed'),
    make('small', passedOf(totals)),
    required === false && make('small', ' advisory'),
  );
}

/** The head of the columns that are joined: a button that shows them, or joins them again. */
function joinedHead({ joined, isOpen }, found, set) {
  const scores = new Set(found.flatMap(({ checks }) => checks.filter(({ column }) => joined.includes(COLUMNS[column])).map((check) => score(check.score))));
  const text = `${joined.length < COLUMNS.length ? `${joined.length} more` : countOf(joined.length, 'evaluator')}, all ${scores.size === 1 ? [...scores][0] : 'passed'}`;
  return make(
    'th.joined',
    { scope: 'col' },
    make(
      isNarrow.matches ? 'b' : headElement(),
      { id: 'joined', 'aria-expanded': String(isOpen), title: joined.map(({ name }) => name).join('\n'), onclick: () => set('columns', isOpen ? '' : 'all') },
      isOpen ? ['\u00ab', unseen(` Join ${text}`)] : [text, ' \u00bb'],
    ),
  );
}

function joinedCell(each, { joined, isOpen }) {
  const own = isOpen ? [] : each.checks.filter(({ column }) => joined.includes(COLUMNS[column]));
  const title = own.map((check) => `${check.evaluator.name}: ${score(check.score)}`).join('\n');
  return make('td', title && make('span.cell.passed', { title }, ICONS.passed, unseen(` ${count(own.length)} passed`)));
}

function amountHeads({ sort }, set) {
  return shownAmounts().map(([key, label]) =>
    make(
      'th.amount',
      { scope: 'col', 'aria-sort': sort === key ? 'descending' : null },
      make(headElement(), { id: `by-${key}`, onclick: () => set('sort', sort === key ? '' : key) }, label, sort === key ? ' \u2193' : ''),
    ),
  );
}

/** The columns of amounts that some case has. */
function shownAmounts() {
  return [
    ['slow', 'Latency', 'ms', milliseconds, 50],
    ['tokens', 'Input + output tokens', 'tokens', count, 1],
    ['cost', 'Agent cost', 'usd', dollars, 0.00005],
  ].filter(([, , name]) => CASES.some(({ amounts }) => amounts[name] !== undefined));
}

/** Returns what fills the body with the rows that are in view, and says in the foot how many are not. */
function makePainter(items, columns, body, view, foot) {
  const width = columns.length + 1 + shownAmounts().length;
  const rowHeight = isNarrow.matches ? NARROW_ROW_HEIGHT : ROW_HEIGHT;
  const tops = new Float64Array(items.length + 1);
  const before = new Uint32Array(items.length + 1);
  items.forEach((each, index) => {
    tops[index + 1] = tops[index] + (each.members ? GROUP_HEIGHT : rowHeight);
    before[index + 1] = before[index] + (each.members ? 0 : 1);
  });
  const pad = (height) =>
    height > 0 ? make('tr.pad', { 'aria-hidden': 'true' }, make('td', { colspan: width, style: { height: `${height}px` } })) : null;
  const itemAt = (pixels) => Math.max(0, tops.findIndex((top) => top > pixels) - 1);
  let painted = '';
  const paint = (again) => {
    // A table that is wider than the page scrolls in its own region.
    if (again) view.classList.toggle('own', !isNarrow.matches && view.scrollWidth > view.clientWidth + 1);
    view.parentNode.classList.toggle('wider', view.scrollWidth - view.scrollLeft > view.clientWidth + 1);
    const start = body.getBoundingClientRect().top;
    const above = Math.max(0, view.getBoundingClientRect().top) - start;
    const isLong = items.length > MAX_ROWS && !isPrinted;
    const from = isLong ? Math.max(0, Math.min(items.length - 1, itemAt(above) - EXTRA_ROWS)) : 0;
    const to = isLong ? Math.min(items.length, from + Math.ceil(innerHeight / GROUP_HEIGHT) + 2 * EXTRA_ROWS) : items.length;
    const key = `${from} ${to} ${cursor}`;
    if (key !== painted || again) {
      painted = key;
      let index = before[from];
      const rows = items.slice(from, to).map((each) => (each.members ? groupRow(each, width) : caseRow(each, columns, index++)));
      body.replaceChildren(...[pad(tops[from]), ...rows, pad(tops[items.length] - tops[to])].filter(Boolean));
    }
    const bottom = view.getBoundingClientRect().top + view.clientHeight - start + 2;
    const whole = before[tops.findLastIndex((top) => top <= bottom)];
    foot.textContent = view.scrollHeight > view.clientHeight ? `${count(whole)} of ${countOf(listed.length, 'case')}${whole < listed.length ? ', scroll for more' : ''}` : '';
  };
  return paint;
}

function groupRow({ heading, members }, width) {
  const failed = members.filter((each) => each.status === 'failed').length;
  return make(
    'tr.group',
    make('th', { colspan: width, scope: 'rowgroup' }, make('div', make('span', { title: heading }, prose(heading)), ' ', quiet(dotted(countOf(members.length, 'case'), failed && `${count(failed)} failed`)))),
  );
}

function caseRow(each, columns, index) {
  const open = (event) => {
    if (!event.target.closest('a')) go(caseHash(each));
  };
  return make(
    'tr.row',
    { 'aria-rowindex': index + 2, class: index === cursor ? 'at' : '', onclick: open },
    make(
      'th',
      { scope: 'row' },
      make(
        'div.case',
        dot(each.status, each.state),
        make('a', { href: caseHash(each), title: each.id, 'data-case': each.index }, each.id || '(no name)'),
        make(
          'div.line',
          // The icon says what else newly fails or has an error.
          HAS_BASELINE && !newlyFails(each) && statePill(shownState(each), each.status),
          each.answer_changed && ['same', 'lower_score', 'lost', undefined].includes(shownState(each)) ? pill('note', 'Answer changed') : null,
          pillsOf(each),
          make('span.sub', each.question && each.question !== each.id ? each.question : CONFIGS.length > 1 && configOf(each)),
        ),
      ),
    ),
    columns.map((column) => (column.joined ? joinedCell(each, column) : cell(each, column.index))),
    shownAmounts().map(([, , name, format, least]) => {
      const isWorse = isMore(name, least)(each);
      return make(
        'td.amount',
        format(each.amounts[name]),
        isWorse && make('div', delta(each.amounts[name] - each.before[name], { format, good: -1, least: 0 })),
      );
    }),
  );
}

/** What is worse besides the state of a case. */
function pillsOf({ tools, large }) {
  const text = tools && `${tools.join(', ')} newly fails`;
  return [text && make('span.pill.failed', { title: text }, text), large && pill('note', largeText({ large }))];
}

function cell(each, column) {
  const own = [...each.checks, ...each.removed].filter((check) => check.column === column);
  if (!own.length) return make('td');
  const [check] = own;
  const { evaluator, status, before, change, turned } = check;
  const word = scoreWord(check);
  const isNumber = /^-?\d/.test(word);
  const title = [
    `${evaluator.name}: ${STATUS_WORDS[status]}`,
    check.score === undefined ? '' : `score ${number(check.score)}`,
    evaluator.criterion,
    before ? `baseline: ${before[0]} ${number(before[1])}`.trim() : '',
  ];
  return make(
    'td',
    make(
      'a.cell',
      { class: `${status} ${turned === 'still_failing' ? '' : turned}`, href: caseHash(each, check), title: `${title.filter(Boolean).join(', ')}\n${check.reason ?? ''}` },
      unseen(`${evaluator.name}: ${STATUS_WORDS[status]} `),
      make(isNumber ? 'b' : 'b.word', status === 'skipped' && check.score === undefined ? 'skip' : word),
      isNumber && change !== null && Math.abs(change) >= MIN_CHANGE && make('small', { class: change < 0 ? 'worse' : 'better' }, `${change > 0 ? '\u25b2' : '\u25bc'}${score(Math.abs(change))}`),
      turned === 'lost' && status !== 'removed' && make('small', `was ${score(before[1] ?? 1)}`),
      own.length > 1 && make('small', `+${own.length - 1}`),
    ),
  );
}

function moveCursor(by) {
  cursor = Math.max(0, Math.min(listed.length - 1, cursor + by));
  paintRows(true);
  const row = document.querySelector('tr.at');
  if (row) {
    row.scrollIntoView({ block: 'nearest' });
    row.querySelector('a').focus({ preventScroll: true });
  }
  else scrollBy(0, by * ROW_HEIGHT);
}
