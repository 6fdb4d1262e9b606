// Which checks are shown, in which order: pure functions over the data of the page.

const STATUSES = ['failed', 'errored', 'skipped', 'passed'];
const PAGE = 100;

/** The state of the page that its address holds after the `#`. */
function readHash(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ''));
  const page = Number.parseInt(given.get('page') ?? '1', 10);
  return {
    query: given.get('query') ?? '',
    status: (given.get('status') ?? '').split(',').filter((each) => STATUSES.includes(each)),
    evaluator: given.get('evaluator') ?? '',
    config: given.get('config') ?? '',
    sort: Object.hasOwn(ORDERS, given.get('sort') ?? '') ? given.get('sort') : 'worst',
    down: given.get('down') === 'yes',
    page: page >= 1 ? page : 1,
    check: given.get('check') ?? '',
  };
}

/** The state as text, without default values. */
function writeHash(state) {
  const values = {
    query: state.query,
    status: state.status.join(','),
    evaluator: state.evaluator,
    config: state.config,
    sort: state.sort === 'worst' ? '' : state.sort,
    down: state.down ? 'yes' : '',
    page: state.page > 1 ? String(state.page) : '',
    check: state.check,
  };
  return `#${new URLSearchParams(Object.entries(values).filter(([, value]) => value))}`;
}

/** The checks of the data, each with its evaluator, its case, and the text that is searched. */
function joinChecks(data) {
  return data.checks.map((check) => {
    const evaluator = data.evaluators[check.evaluator];
    const ofCase = data.cases[check.case];
    return { ...check, evaluator, case: ofCase, text: searchedText(check, evaluator, ofCase) };
  });
}

function searchedText(check, evaluator, ofCase) {
  return [
    ofCase.id,
    evaluator.name,
    evaluator.config,
    check.headline,
    check.id,
    ofCase.trace,
    ofCase.file,
    check.reasoning ?? '',
    ...(check.misses ?? []),
    ...ofCase.turns.flat(),
  ]
    .join('\n')
    .toLowerCase();
}

/** The checks that contain all words of the query and match the filters, in their order. */
function filterChecks(checks, { query, status, evaluator, config }) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return checks.filter(
    (check) =>
      (!status.length || status.includes(check.status)) &&
      (!evaluator || check.evaluator.name === evaluator) &&
      (!config || check.evaluator.config === config) &&
      words.every((word) => check.text.includes(word)),
  );
}

const collator = new Intl.Collator('en', { numeric: true });

// Checks without a score sort as the worst.
const ORDERS = {
  worst: (a, b) =>
    STATUSES.indexOf(a.status) - STATUSES.indexOf(b.status) ||
    Number(b.evaluator.required) - Number(a.evaluator.required) ||
    ORDERS.score(a, b),
  status: (a, b) => STATUSES.indexOf(a.status) - STATUSES.indexOf(b.status),
  case: (a, b) => collator.compare(a.case.id, b.case.id),
  evaluator: (a, b) => collator.compare(a.evaluator.name, b.evaluator.name),
  config: (a, b) => collator.compare(a.evaluator.config, b.evaluator.config),
  score: (a, b) => (a.score ?? -1) - (b.score ?? -1),
  seconds: (a, b) => a.seconds - b.seconds,
};

/** Sort checks; the sort is stable. */
function sortChecks(checks, { sort, down }) {
  const order = ORDERS[sort];
  return [...checks].sort(down ? (a, b) => order(b, a) : order);
}

/** The checks of a page; of the last one if there are fewer pages. */
function pageOf(checks, requested) {
  const pages = Math.max(1, Math.ceil(checks.length / PAGE));
  const page = Math.min(requested, pages);
  return {
    page,
    pages,
    from: (page - 1) * PAGE,
    shown: checks.slice((page - 1) * PAGE, page * PAGE),
  };
}

/** The number of checks found: "12 of 1,000 checks". */
function hits(found, all) {
  const noun = all === 1 ? 'check' : 'checks';
  return found === all ? `${count(all)} ${noun}` : `${count(found)} of ${count(all)} ${noun}`;
}

function count(amount) {
  return amount.toLocaleString('en');
}

/** At most three decimals, as in the other reports. */
function number(value) {
  return value === null || value === undefined ? '' : String(Number(value.toFixed(3)));
}
