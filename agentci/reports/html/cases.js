// The cases of the page, and which of them are shown in which order: pure functions over its data.

const STATUSES = ['failed', 'errored', 'passed', 'skipped'];
// Of each class of cases, the worst first: the filter that selects it, its name and its colour. Those with a lower score also passed in both.
const CLASSES = {
  new_failure: ['new', 'Newly failing', 'failed'],
  error: ['newly_errored', 'Newly errored', 'errored'],
  unrecorded: ['unrecorded', 'Without a recorded run', 'errored'],
  lost: ['lost', 'No longer fully evaluated', 'errored'],
  // Passes or fails as before, with another fact in its answer: also in the class of its state.
  changed_fact: ['facts', 'Changed fact', 'note'],
  still_failing: ['still', 'Still failing', 'failed'],
  still_errored: ['still_errored', 'Still errored', 'errored'],
  // Of any state, with an amount that is some times that of the baseline.
  large: ['large', 'Large increase', 'note'],
  lower_score: ['lower', 'Lower score', 'note'],
  fixed: ['fixed', 'Fixed', 'passed'],
  new_case: ['added', 'New', 'note'],
  newly_evaluated: ['gained', 'Evaluated only now', 'note'],
  not_evaluated: ['none', 'Without a verdict', 'skipped'],
  same: ['same', 'Passed in both'],
};
const STATES = Object.keys(CLASSES);
const NOT_RUN = 'only the baseline has a run';
const MIN_CHANGE = 0.005;
// A lower score that still passes is named from this drop on.
const MIN_FALL = 0.05;

/** The failed and errored checks, the decisive one first, as in the data. */
function problemsOf({ checks }) {
  return checks.filter(({ status }) => status === 'failed' || status === 'errored');
}

/** The cases of the data, each with its checks, and the columns of the table of cases. */
function joinCases(data) {
  const columns = [];
  const byName = new Map();
  const taken = new Map();
  const columnOf = (name) => {
    if (!byName.has(name)) {
      byName.set(name, columns.length);
      columns.push({ name, index: columns.length, checks: [], removed: 0 });
    }
    return byName.get(name);
  };
  for (const { name } of data.evaluators) columnOf(name);
  for (const { name } of data.baseline?.removed ?? []) columnOf(name);
  const cases = data.cases.map((given, index) => {
    const used = (taken.get(given.id) ?? 0) + 1;
    taken.set(given.id, used);
    const checks = given.checks.map((check) => {
      const evaluator = data.evaluators[check.evaluator];
      const pieces = data.reasons?.[check.cause];
      return { ...check, ...changeOf(check, given.state), evaluator, pieces, column: byName.get(evaluator.name) };
    });
    // Checks that only the baseline has.
    const removed = (given.removed ?? []).map(([name, before]) => {
      const column = columnOf(name);
      columns[column].removed += 1;
      return { status: 'removed', evaluator: { name }, column, before: ['passed', before], turned: 'lost', change: null };
    });
    const joined = {
      tags: [],
      amounts: {},
      question: '',
      ...given,
      index,
      checks,
      removed,
      name: used === 1 ? given.id : `${given.id}~${used}`,
      ...summaryOf(checks),
    };
    for (const check of checks) columns[check.column].checks.push(check);
    joined.text = searchedText(joined);
    return joined;
  });
  return { cases, columns };
}

function totalsOf(statuses) {
  const totals = { passed: 0, failed: 0, errored: 0, skipped: 0 };
  for (const each of statuses) totals[each] += 1;
  return totals;
}

/** "9 of 11 \u00b7 1 error": what passed of the checks that passed or failed, and the others. */
function passedOf({ passed, failed, errored, skipped }) {
  return dotted(passed + failed && `${count(passed)} of ${count(passed + failed)}`, errored && countOf(errored, 'error'), skipped && `${count(skipped)} skipped`);
}

/** What the checks of a case amount to: the worst status, the largest drop, and the sum of drops. */
function summaryOf(checks) {
  return {
    status: STATUSES.find((status) => checks.some((check) => check.status === status)) ?? 'errored',
    drop: Math.min(0, ...checks.map((check) => check.change ?? 0)),
    gain: Math.max(0, ...checks.map((check) => check.change ?? 0)),
    drops: checks.reduce((sum, check) => sum + Math.min(0, check.change ?? 0), 0),
  };
}

/** A case as if it had only the checks of one evaluator; null if it has none. */
function withOnly(each, evaluator) {
  const [checks, removed] = [each.checks, each.removed].map((all) => all.filter((check) => check.evaluator.name === evaluator));
  if (!checks.length && !removed.length) return null;
  const own = { ...each, ...summaryOf(checks), checks, removed, whole: each };
  own.state &&= STATES.find((state) => [...checks, ...removed].some(({ turned }) => turned === state)) ?? (each.state === 'new_case' ? each.state : 'same');
  return own;
}

/** How a check differs from the baseline: its change of status, and of its score. */
function changeOf({ status, score: now, before }, isCompared) {
  const [statusBefore, scoreBefore] = before ?? [];
  const isGood = statusBefore === 'passed';
  let turned = '';
  if (isCompared && status === 'failed') turned = statusBefore === 'failed' ? 'still_failing' : 'new_failure';
  else if (isCompared && status === 'errored') turned = statusBefore === 'errored' ? 'still_errored' : 'error';
  else if (status === 'passed' && (statusBefore === 'failed' || statusBefore === 'errored')) turned = 'fixed';
  else if (status === 'skipped' && isGood) turned = 'lost';
  const known = now !== undefined && scoreBefore !== undefined && scoreBefore !== null;
  const change = known ? now - scoreBefore : null;
  if (status === 'passed' && isGood && change !== null && change <= -MIN_FALL) turned = 'lower_score';
  return { turned, change };
}

/** The config of a case, which without a recorded run is not known. */
function configOf({ checks: [first] }) {
  return first?.evaluator.config ?? NOT_RUN;
}

function searchedText({ id, question, tags, checks }) {
  const reasons = checks.map(({ reason, evaluator }) => `${reason ?? ''} ${evaluator.config}`);
  return [id, question, ...tags, ...reasons].join('\n').toLowerCase();
}

// Of one case, an amount that is more by this share (latency: also by 50 ms) is marked and filtered.
const NOTICED = 0.25;
const isMore = (name, least = 1e-9) => ({ amounts, before = {} }) => amounts[name] - before[name] >= Math.max(least, NOTICED * before[name]);

const hasState = (wanted) => ({ state, facts, large }) => state === wanted || (state === 'lower_score' && wanted === 'same') || (facts && wanted === 'changed_fact') || (large && wanted === 'large');
const changesBy = (sign) => (each) => each.checks.some(({ change }) => sign * change >= MIN_FALL);
const newlyFails = ({ state }) => state === 'new_failure' || state === 'error';
const isWorse = (each) => ['new_failure', 'error', 'unrecorded', 'lost', 'lower_score'].includes(each.state) || changesBy(-1)(each) || each.tools || each.facts || each.large;

/** By name: label, which cases it shows, the status whose colour it has, and its limits. */
const FILTERS = {
  all: ['All cases', () => true],
  failed: ['Failed', (each) => each.status === 'failed', 'failed'],
  error: ['Errors', (each) => each.checks.some((check) => check.status === 'errored'), 'errored'],
  ...Object.fromEntries(Object.entries(CLASSES).map(([state, [key, label, colour]]) => [key, [label, hasState(state), STATUSES.includes(colour) && colour]])),
  worse: ['Worse', isWorse, 'failed'],
  better: ['Better', (each) => !isWorse(each) && (hasState('fixed')(each) || changesBy(1)(each)), 'passed'],
  skipped: [
    'Skipped',
    (each) => each.checks.some((check) => check.status === 'skipped'),
    'skipped',
  ],
  passed: ['Passed', (each) => each.status === 'passed', 'passed'],
  answer: ['Answer changed', (each) => each.answer_changed],
  calls: ['Calls changed', (each) => each.calls_changed],
  tools: ['A tool newly fails', ({ tools }) => tools, 'failed'],
  slow: ['Slower', isMore('ms', 50), '', 'by 25% and 50 ms or more'],
  costly: ['More tokens', isMore('tokens'), '', 'input + output, by 25% or more'],
  dearer: ['Higher cost', isMore('usd', 5e-5), '', 'by 25% or more'],
  large_ms: ['Much slower', ({ large }) => large?.ms],
  large_tokens: ['Many more tokens', ({ large }) => large?.tokens],
  large_usd: ['Much higher cost', ({ large }) => large?.usd],
};

const collator = new Intl.Collator('en', { numeric: true });
const rank = (each) => Math.min(STATES.indexOf(shownState(each) ?? 'same'), each.large ? STATES.indexOf('large') : Infinity);
/** The state of a case; that its answer has another fact, if that is more serious. */
const shownState = ({ state, facts }) => (facts && !(STATES.indexOf(state) < STATES.indexOf('changed_fact')) ? 'changed_fact' : state);
/** The amounts that are much more; tokens are what costs. */
const largeText = ({ large: { tokens, ...others } }) => Object.values(others.usd ? others : { ...others, tokens }).filter(Boolean).join(', ');
/** Which amounts are much more, without how much. */
const kindOf = (each) => largeText(each).replace(/\S+\u00d7/g, '');
/** How many times the first of these amounts grew. */
const largest = (each) => (each.large ? parseFloat(largeText(each)) : 0);
const statusRank = (each) => STATUSES.indexOf(each.status);
/** The number of its changed fact: numbers come before words, then the facts of most cases. */
const factNumber = ({ facts }) => facts?.[2] ?? 0;
const byFact = (a, b) => factNumber(a) - factNumber(b);
/** How much more an amount is than in the baseline. */
const increase = ({ amounts, before }, name) => amounts[name] - before?.[name];
const mostMore = (name) => (a, b) => (increase(b, name) || 0) - (increase(a, name) || 0);
const most = (name) => (a, b) => (b.amounts[name] ?? -1) - (a.amounts[name] ?? -1);

/** The larger drops first, and without a baseline the case with more failed checks. */
const failures = (each) => each.checks.filter(({ status }) => status === 'failed').length;
const worse = (a, b) => a.drops - b.drops || failures(b) - failures(a);

/** By name: label and order. */
const ORDERS = {
  attention: [
    'Needs attention',
    (a, b) =>
      rank(a) - rank(b) || byFact(a, b) || statusRank(a) - statusRank(b) || worse(a, b) || largest(b) - largest(a) || a.index - b.index,
  ],
  drop: ['Largest drop', (a, b) => a.drop - b.drop || a.drops - b.drops],
  gain: ['Largest gain', (a, b) => b.gain - a.gain],
  name: ['Name', (a, b) => collator.compare(a.id, b.id)],
  slow: ['Slowest', most('ms')],
  tokens: ['Most input + output tokens', most('tokens')],
  cost: ['Highest agent cost', most('usd')],
  slower: ['Increase of latency', mostMore('ms'), 'ms'],
  longer: ['Increase of input + output tokens', mostMore('tokens'), 'tokens'],
  dearer: ['Increase of agent cost', mostMore('usd'), 'usd'],
};

/** Order by the lowest score of a column; errors first, cases without a check last. */
function byColumn(index) {
  const lowest = (each) => {
    const own = each.checks.filter((check) => check.column === index);
    if (!own.length) return 3;
    return Math.min(
      ...own.map((check) => (check.status === 'errored' ? -1 : (check.score ?? 2))),
    );
  };
  return (a, b) => lowest(a) - lowest(b);
}

const GROUPS = {
  none: 'No groups',
  cause: 'Group by cause',
  state: 'Group by change',
  tag: 'Group by tag',
  config: 'Group by config',
};

/** The cases that an evaluator has checked, each with its checks only; without a name, all. */
function casesOf(cases, evaluator) {
  return evaluator ? cases.map((each) => withOnly(each, evaluator)).filter(Boolean) : [...cases];
}

/** The cases of an evaluator that a search finds, which the filters count. */
function searchCases(cases, { query, evaluator = '' }) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return casesOf(cases, evaluator).filter(
    (each) =>
      words.every((word) =>
        word.length > 1 && word[0] === '#'
          ? each.tags.some((tag) => tag.toLowerCase() === word.slice(1))
          : each.text.includes(word) || each.answers?.includes(word),
      ),
  );
}

/** The cases that match, in order. */
function selectCases(cases, selection) {
  const { filter, sort, like } = selection;
  const matches = FILTERS[filter]?.[1] ?? (() => true);
  const found = searchCases(cases, selection).filter((each) => matches(each) && (like === '' || String(each.cluster) === like));
  const column = /^e(\d+)$/.exec(sort);
  found.sort(column ? byColumn(Number(column[1])) : (ORDERS[sort] ?? ORDERS.attention)[1]);
  return found.map((each) => each.whole ?? each);
}

/** The reason of the first of some checks, with the ranges of the numbers in which equal ones differ. */
function reasonOf(checks) {
  const [{ cause, pieces }] = checks;
  const same = checks.filter((check) => check.cause === cause);
  return pieces.map((piece, at) => (at ? rangeOf(same.map(({ numbers }) => numbers[at - 1])) : '') + piece).join('');
}

function rangeOf(numbers) {
  const value = (text) => Number(text.replaceAll(',', ''));
  const sorted = numbers.toSorted((a, b) => value(a) - value(b));
  return [...new Set([sorted[0], sorted.at(-1)])].join(' to ');
}

/**
 * Cases with a heading before each group; without groups, the cases.
 *
 * Groups have an order of their own, whatever that of the cases: changes the worst first, causes
 * by their numbers, of one evaluator the most frequent first, others by name. A cause has its name, else the reason of its
 * first decisive check; of one evaluator, the reasons of a group differ only in numbers.
 */
function groupCases(cases, by, evaluator = '', names = {}) {
  const groups = new Map();
  const put = (key, heading, each, position = 0, own = []) => {
    if (!groups.has(key)) groups.set(key, { heading, position, members: [], checks: [] });
    const { members, checks } = groups.get(key);
    if (members.at(-1) !== each) members.push(each);
    checks.push(...own);
  };
  const putters = {
    tag: (each) => put(each.tags[0] ?? '', each.tags[0] ?? 'no tag', each, each.tags.length ? 0 : 1),
    config: (each) => put(configOf(each), configOf(each), each),
    state: (each) => {
      const { state = 'same' } = evaluator ? withOnly(each, evaluator) : each;
      put(state, CLASSES[state][1], each, STATES.indexOf(state));
    },
    cause: (each) => {
      const causes = problemsOf(each).filter((check) => !evaluator || check.evaluator.name === evaluator);
      if (evaluator) for (const check of causes) put(check.cause, '', each, 0, [check]);
      else if (causes.length) put(each.cluster, names[each.cluster] ?? '', each, each.cluster, causes.slice(0, 1));
      if (!causes.length) put('', 'No failed check', each, 1e9);
    },
  };
  if (!Object.hasOwn(putters, by)) return cases;
  cases.forEach(putters[by]);
  if (by === 'cause' && groups.has('') && groups.size === 1) return cases;
  for (const each of groups.values()) each.heading ||= reasonOf(each.checks);
  const size = ({ members }) => (by === 'cause' ? -members.length : 0);
  const sorted = [...groups.values()].sort(
    (a, b) => a.position - b.position || size(a) - size(b) || collator.compare(a.heading, b.heading),
  );
  return sorted.flatMap(({ heading, members }) => [{ heading, members }, ...members]);
}

const VIEWS = ['evaluators', 'compare', 'messages'];

/** What the address shows: `#/case/ID?with=base`. */
function readHash(hash) {
  const text = hash.replace(/^#/, '');
  const [path, query = ''] = text.split(/\?(.*)/s);
  const params = Object.fromEntries(new URLSearchParams(query));
  if (path.startsWith('/case/')) return { view: 'case', id: decode(path.slice(6)), params };
  const view = path.slice(1);
  return { view: VIEWS.includes(view) ? view : 'overview', id: '', params };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const DEFAULTS = { f: 'all', sort: 'attention', group: 'none' };

/** The address of a view, without default values; the comparison shows not all cases by default. */
function writeHash(path, params = {}) {
  const isGiven = ([key, value]) => value && (value !== DEFAULTS[key] || (key === 'f' && path === '/compare'));
  const given = Object.entries(params).filter(isGiven);
  const query = new URLSearchParams(given).toString();
  return `#${path}${query && '?'}${query}`;
}

/** The selection that an address holds. */
function readSelection(params) {
  return {
    filter: Object.hasOwn(FILTERS, params.f ?? '') ? params.f : 'all',
    query: params.q ?? '',
    sort: params.sort ?? 'attention',
    group: Object.hasOwn(GROUPS, params.group ?? '') ? params.group : 'none',
    like: params.like ?? '',
    evaluator: params.e ?? '',
    columns: params.columns,
  };
}
