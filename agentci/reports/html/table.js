// The table of checks, with its search, filters and sorting.

const COLUMNS = [
  ['status', 'Status'],
  ['case', 'Case'],
  ['evaluator', 'Evaluator'],
  ...(configs.length > 1 ? [['config', 'Config']] : []),
  ['score', 'Score'],
  ['outcome', 'Outcome'],
  ['seconds', 'Seconds'],
];

const search = make('input', {
  id: 'search',
  type: 'search',
  autocomplete: 'off',
  spellcheck: 'false',
  placeholder: 'Case, evaluator or outcome',
  oninput: () => change({ query: search.value }),
});
const statuses = STATUSES.map((status) =>
  make('input', {
    type: 'checkbox',
    value: status,
    id: `status-${status}`,
    onchange: () =>
      change({ status: statuses.filter((box) => box.checked).map((box) => box.value) }),
  }),
);
const byEvaluator = choice('evaluator', 'All evaluators', evaluators);
const byConfig = choice('config', 'All configs', configs);
const summary = make('p', { id: 'hits', role: 'status', 'aria-live': 'polite' });
const clear = make(
  'button',
  {
    type: 'button',
    onclick: () => change({ ...readHash(''), sort: state.sort, down: state.down }),
  },
  'Clear search and filters',
);
const head = make('tr', {});
const body = make('tbody', {});
const pages = make('nav', { 'aria-label': 'Pages of checks', class: 'pages' });

function choice(key, all, names) {
  return make(
    'select',
    { id: key, onchange: (event) => change({ [key]: event.target.value }) },
    make('option', { value: '' }, all),
    names.map((name) => {
      const option = make('option', {}, name);
      option.value = name;
      return option;
    }),
  );
}

function controls() {
  const labelled = (control, words) =>
    make('div', {}, make('label', { for: control.id }, words), control);
  const amounts = Object.fromEntries(STATUSES.map((status) => [status, 0]));
  for (const check of checks) amounts[check.status] += 1;
  return make(
    'form',
    { role: 'search', class: 'controls', onsubmit: (event) => event.preventDefault() },
    labelled(search, 'Search (press /)'),
    evaluators.length > 1 ? labelled(byEvaluator, 'Evaluator') : null,
    configs.length > 1 ? labelled(byConfig, 'Config') : null,
    make(
      'fieldset',
      {},
      make('legend', {}, 'Status'),
      statuses.map((box) =>
        make(
          'label',
          { class: 'choice', for: box.id },
          box,
          statusMark(box.value),
          ` ${count(amounts[box.value])}`,
        ),
      ),
    ),
  );
}

function showTable(found) {
  if (search.value !== state.query) search.value = state.query;
  for (const box of statuses) box.checked = state.status.includes(box.value);
  [byEvaluator.value, byConfig.value] = [state.evaluator, state.config];
  const { page, pages: all, from, shown } = pageOf(found, state.page);
  summary.textContent = hits(found.length, checks.length);
  clear.hidden = found.length === checks.length;
  head.replaceChildren(...COLUMNS.map(columnHead));
  body.replaceChildren(...shown.map(row));
  const step = (words, to) =>
    make(
      'button',
      { type: 'button', disabled: to < 1 || to > all, onclick: () => turnTo(to) },
      words,
    );
  pages.replaceChildren(
    ...(all > 1
      ? [
          step('Previous', page - 1),
          make(
            'span',
            {},
            `${count(from + 1)} to ${count(from + shown.length)} of ${count(found.length)}`,
          ),
          step('Next', page + 1),
        ]
      : []),
  );
}

function turnTo(page) {
  change({ page });
  section.focus();
  section.scrollIntoView();
}

function columnHead([key, words]) {
  if (!Object.hasOwn(ORDERS, key)) return make('th', { scope: 'col', class: `of-${key}` }, words);
  const current = state.sort === key;
  return make(
    'th',
    { scope: 'col', 'aria-sort': current ? (state.down ? 'descending' : 'ascending') : null },
    make(
      'button',
      { type: 'button', id: `by-${key}`, onclick: () => sortBy(key, current) },
      words,
      make('span', { 'aria-hidden': 'true' }, current ? (state.down ? ' \u2193' : ' \u2191') : ''),
    ),
  );
}

/** Sort ascending, then descending, then worst first again. */
function sortBy(key, current) {
  change(current && state.down ? { sort: 'worst', down: false } : { sort: key, down: current });
  document.getElementById(`by-${key}`).focus();
}

function row(check) {
  const cells = {
    status: statusMark(check.status),
    case: make(
      'a',
      { href: addressOf(check), 'data-check': check.id },
      check.case.id || '(no name)',
    ),
    evaluator: [check.evaluator.name, check.evaluator.required ? '' : ' (advisory)'],
    config: check.evaluator.config,
    score: number(check.score),
    outcome: make('div', {}, [check.headline, ...(check.misses ?? [])].join('; ').slice(0, 300)),
    seconds: check.cached ? 'cached' : number(check.seconds),
  };
  return make(
    'tr',
    {},
    COLUMNS.map(([key, words]) => make('td', { class: `of-${key}`, 'data-of': words }, cells[key])),
  );
}
