// The views of all evaluators: their scores, and their comparison with the baseline.

const BINS = 10;
const MAX_CHANGED = 50;
// Of evaluators beside the first case that changed; the table of more is folded.
const MAX_SCORE_ROWS = 3;
const MAX_PRINTED = 500;

function evaluatorsView() {
  const several = CONFIGS.length > 1;
  const columns = DATA.columns ?? [];
  const rows = [...columns].sort((a, b) => isEmpty(b) - isEmpty(a)).map((column) => {
    const checks = checksOf(column);
    const { type, criterion, place } = checks[0].evaluator;
    const evaluated = column.passed + column.failed;
    const selected = { e: column.name, q: several ? column.config : '' };
    const own = searchCases(CASES, { query: selected.q, evaluator: column.name });
    // A number leads to the cases that it counts.
    const amountOf = (f, status) => {
      const amount = column[status];
      const isListed = own.filter(FILTERS[f][1]).length === amount;
      return amount ? make(isListed ? 'a' : 'span', { href: isListed && writeHash('/', { ...selected, f }) }, count(amount)) : '\u2013';
    };
    return [
      [
        dot(column.status),
        ' ',
        make('a', { href: writeHash('/', { ...selected }) }, make('b', column.name)),
        advisoryPill(checks[0].evaluator),
        make('div.quiet', dotted(type, criterion, place, several && column.config)),
      ],
      histogram(checks),
      evaluated ? [column.passed ? amountOf('passed', 'passed') : 0, ` of ${count(evaluated)}`] : pill('errored', 'nothing evaluated'),
      amountOf('failed', 'failed'),
      amountOf('error', 'errored'),
      amountOf('skipped', 'skipped'),
      column.mean || '\u2013',
      column.pass_rate || '\u2013',
      baselineCell(column),
    ];
  });
  for (const { name, baseline } of DATA.baseline?.removed ?? []) {
    rows.unshift([[dot('errored'), ' ', make('a', { href: writeHash('/', { e: name }) }, make('b', name)), ' ', pill('errored', 'removed')], '\u2013', `0 of ${count(baseline.checks)}`, '\u2013', '\u2013', '\u2013', '\u2013', '\u2013', baseline.before === null ? '\u2013' : quiet(`mean score ${score(baseline.before)}`)]);
  }
  const hasInterval = columns.some(({ mean, pass_rate: rate }) => `${mean}${rate}`.includes(' to '));
  const heads = ['Evaluator', 'Scores and threshold', 'Passed', 'Failed', 'Errors', 'Skipped', headOf('Mean score', hasInterval), headOf('Pass rate', hasInterval), ...(HAS_BASELINE ? ['Passed of common checks'] : [])];
  const cells = rows.map((each) => each.slice(0, heads.length));
  return [
    make('h1', 'Evaluators'),
    card('Evaluators', scrolled('Scores of evaluators', labelled(tableOf('wide', heads, cells), heads))),
    make('p.hint', 'Mean scores are of checks that passed or failed', HAS_BASELINE && ', compared ones of the checks that both runs evaluated', '.'),
  ];
}

/** How many of the checks that both runs evaluated passed in each, and their mean scores. */
function baselineCell({ baseline, both: [old, now, all] }) {
  if (!baseline || !all) return '\u2013';
  return [`${count(old)} \u2192 ${count(now)} of ${count(all)}`, make('div.quiet', `mean score ${baseline.means} `, meanDelta(baseline))];
}

/** How the mean score changed, as it is shown; with a colour if that is the outcome. */
function meanDelta({ means, label }) {
  const [old, now] = means.split(' \u2192 ');
  return delta(now - old, { format: number, least: 0.0005, good: label === 'regressed' || label === 'improved' ? 1 : 0 });
}

function headOf(label, hasInterval) {
  return hasInterval ? `${label} (95% CI)` : label;
}

function checksOf({ name, config }) {
  const column = COLUMNS.find((each) => each.name === name);
  return column.checks.filter(({ evaluator }) => evaluator.config === config);
}

/** Write the column's name into each cell, for screens that are too narrow for columns. */
function labelled(table, heads) {
  for (const row of table.tBodies[0].rows) {
    [...row.cells].forEach((each, index) => {
      each.setAttribute('data-label', heads[index]);
      each.classList.toggle('nothing', each.textContent === '\u2013');
    });
  }
  return table;
}

function histogram(checks) {
  const bins = Array.from({ length: BINS }, () => ({ passed: 0, failed: 0 }));
  const scored = checks.filter(({ status, score: value }) => value !== undefined && bins[0][status] !== undefined);
  for (const { status, score: value } of scored) bins[Math.max(0, Math.min(BINS - 1, Math.floor(value * BINS)))][status] += 1;
  if (!scored.length) return '\u2013';
  const highest = Math.max(...bins.map(({ passed, failed }) => passed + failed));
  const text = bins.map(({ passed, failed }, index) => [passed + failed, index]).filter(([amount]) => amount).map(([amount, index]) => `${count(amount)} from ${index / BINS} to ${(index + 1) / BINS}`);
  const { threshold } = checks[0].evaluator;
  const height = (amount) => ({ height: `${(100 * amount) / highest}%` });
  return make(
    'div.histogram',
    { role: 'img', label: `Scores: ${text.join(', ')}${threshold === null ? '' : '; threshold '}${number(threshold)}` },
    bins.map(({ passed, failed }) => make('span', failed ? make('i.failed', { style: height(failed) }) : null, passed ? make('i.passed', { style: height(passed) }) : null)),
    threshold === null || threshold < 0 || threshold > 1 ? null : make('b', { style: { left: `${100 * threshold}%` } }),
  );
}

function compareView() {
  const { baseline } = DATA;
  if (!baseline || (baseline.missing && !HAS_BASELINE)) {
    const note = baseline?.missing || 'No baseline: compared with what is expected. To compare with an earlier run, pass --baseline.';
    return [make('div.head', make('h1', 'Answers'), quiet(note)), casesView()];
  }
  const columns = [...(DATA.columns ?? []), ...(baseline.removed ?? [])].filter((column) => column.baseline);
  const has = (name) => columns.some((column) => column.baseline[name] !== null);
  const heads = ['Evaluator', 'Mean score', headOf('Change', has('low')), 'Changed checks', 'In both runs', baseline.outcome_head];
  const rows = columns.map(comparedRow);
  const classes = baseline.classes ?? [];
  const all = classes.reduce((sum, [, found]) => sum + found, 0);
  return [
    make('div.head', make('h1', 'Comparison with the baseline'), make('code', baselineName()), make('span.why', changesText())),
    make('div.card.lost', lostNotes(Infinity)),
    make('div.card.folds',
    rows.length ? make('details.fold', { open: isPrinted || (!isNarrow.matches && rows.length <= MAX_SCORE_ROWS) }, make('summary', 'Scores by evaluator: ', baseline.outcomes), scrolled('Scores by evaluator', labelled(tableOf('wide compared', heads, rows), heads))) : null,
    make(
      'details.fold.classes',
      { open: isPrinted },
      make('summary', `${countOf(all, 'check')}: `, dotted(...classes.map(([name, found]) => `${count(found)} ${name}`))),
      terms('dl.facts', classes.map(([name, , what]) => [name, what])),
      list(baseline.remarks.map(prose)),
    ),
    removedCasesView(baseline)),
    casesView(),
  ];
}

function signed(value) {
  const shown = number(value, 2).replace('-', '\u2212');
  return value > 0 && shown !== '0' ? `+${shown}` : shown;
}

function comparedRow(column) {
  const { means, lost, low, high, changed, label, reason, p, checks, both } = column.baseline;
  return [
    [column.isRemoved ? make('b', column.name) : make('a', { href: writeHash('/', { e: column.name }) }, make('b', column.name.replaceAll('_', '_\u200b'))), column.isRemoved ? [' ', pill('errored', 'removed')] : null, advisoryPill(column.baseline), CONFIGS.length > 1 ? make('div.quiet', column.config) : null],
    means || '\u2013',
    means && !lost ? [meanDelta(column.baseline) ?? quiet('\u00b10'), low !== null && quiet(` (${signed(low)} to ${signed(high)})`)] : '\u2013',
    changed || '\u2013',
    make('span', { class: both ? '' : 'none-left' }, `${count(both)} of ${count(checks)}`),
    [label, quiet(p === null ? '' : ` (${p})`, reason && `: ${reason}`)],
  ];
}

const COMPARED_FILTERS = ['worse', ...Object.values(CLASSES).map(([key]) => key), 'better', 'all', 'answer', 'calls', 'tools', ...SUBJECTS.Amounts];
// How many cases a list shows, by its address: kept on the way back from a case.
const shownAmount = new Map();
// Of a case in the list: turns, and checks that are as before.
const MAX_TURNS = 3;
const MAX_SCORES = 12;

/** The cases with their scores, tool calls and answers, beside the baseline or what is expected, and what they took. */
function casesView() {
  const selection = readSelection({ f: CASES.some(isWorse) ? 'worse' : 'all', ...here.params });
  const selected = selectCases([...CASES], selection);
  const found = HAS_BASELINE ? groupAlike(selected, selection) : selected.map((each) => [each]);
  shownCases = found.flat();
  const joined = found.filter((each) => each.length > 1);
  const key = location.hash;
  const box = make('div.turns');
  const more = make(isPrinted ? 'p' : 'button.btn', { onclick: () => fill(MAX_CHANGED) });
  let shown = 0;
  const fill = (amount) => {
    const next = found.slice(shown, shown + amount);
    append(box, next.map(comparedCases));
    shown += next.length;
    if (!isPrinted) shownAmount.set(key, shown);
    const left = found.length - shown;
    more.hidden = left <= 0;
    more.textContent = isPrinted ? `${countOf(found.slice(shown).flat().length, 'more case')}: not printed.` : `Show ${count(Math.min(left, MAX_CHANGED))} of ${count(left)} more`;
  };
  fill(isPrinted ? MAX_PRINTED : (shownAmount.get(key) ?? MAX_CHANGED));
  // The next ones follow before the reader is at the end.
  const watched = new IntersectionObserver((entries) => {
    if (isPrinted || !entries.at(-1).isIntersecting) return;
    fill(MAX_CHANGED);
    // Who jumps to the end is there again at once.
    watched.unobserve(more);
    watched.observe(more);
  }, { rootMargin: '800px' });
  watched.observe(more);
  return [
    make('section.card', { 'aria-labelledby': 'cases' }, make('h2.unseen', { id: 'cases' }, 'Cases'), controlsView(selection, '/compare', HAS_BASELINE ? COMPARED_FILTERS : MATRIX_FILTERS)),
    make('p.hint', { role: 'status' }, countOf(shownCases.length, 'case'), joined.length > 0 && [joined.length < found.length && `, ${count(joined.flat().length)} of them`, ` in ${countOf(joined.length, 'group')} by cause`]),
    found.length ? box : make('div.card.none', make('p', 'No case matches.')),
    more,
  ];
}

function removedCasesView({ removed_cases: removed = [], more_removed_cases: more = 0 }) {
  if (!removed.length) return null;
  return make('details.fold.remarks', { open: isPrinted || here.params.show === 'removed' }, make('summary', `${countOf(removed.length + more, 'case')} only in the baseline`), list(removed.map(([id, checks, words]) => [make('a', { href: caseHash({ name: id }) }, id), ` ${words}, ${countOf(checks.length, 'check')} that passed`])), more ? make('p.quiet', `\u2026 and ${count(more)} more`) : null);
}

/** "Latency 1.2 s \u2192 1.8 s", with the change in colour where it counts. */
function comparedAmounts({ amounts, before = {} }) {
  return shownAmounts().map(([, label, name, format, least]) => {
    const [now, old] = [amounts[name], before[name]];
    if (now === undefined) return null;
    const change = amountDelta(now, old, format, least);
    return make('span.num', quiet(`${label} `), change ? [`${format(old)} \u2192 `, make('b', format(now)), ' ', change] : format(now));
  });
}

/** The checks of a case, those that changed or failed first. */
function scoresOf({ checks, removed }) {
  const isNotable = (check) => check.turned || isProblem(check) || Math.abs(check.change ?? 0) >= MIN_CHANGE;
  const { notable = [], other = [] } = Object.groupBy([...checks, ...removed], (check) => (isNotable(check) ? 'notable' : 'other'));
  const left = other.length - MAX_SCORES;
  return list([
    ...notable.map((check) => [dot(check.turned === 'lost' ? 'errored' : check.status), ' ', check.evaluator.name, advisoryPill(check.evaluator), ' ', beforeAndNow(check), ' ', delta(check.change)]),
    ...other.slice(0, MAX_SCORES).map((check) => [dot(check.status), quiet(` ${check.evaluator.name} ${scoreWord(check)}`)]),
    ...(left > 0 ? [quiet(`and ${countOf(left, 'more check')} as before`)] : []),
  ], 'scores');
}

/** The first tool call of a run that is not as in its reference, and how many others are not. */
function firstCall(turns, reference = 'baseline') {
  const found = turns.flatMap((turn, index) => (turn[reference] === 'same' ? [] : differingCalls(turn, reference).map((row) => [row, index])));
  if (!found.length) return null;
  const [[row, index]] = found;
  return [quiet(turns.length > 1 ? `Tool call (turn ${index + 1}) ` : 'Tool call '), make('span.mono', callExcerpt(row, reference === 'baseline')), found.length > 1 ? quiet(` and ${count(found.length - 1)} more`) : null];
}

/** Whether a case is worse only in its amounts. */
const isOnlyLarge = ({ state, tools, large }) => large && state === 'same' && !tools;

/** Cases of one cause, with the same changed checks or fact, or the same tools and kind of increase, are together, unless they have an order of their own; the most serious first. */
function groupAlike(cases, { sort }) {
  if (sort !== 'attention') return cases.map((each) => [each]);
  const keyOf = (each) => {
    const { state, cluster, facts, checks, removed, tools, index } = each;
    if (cluster === undefined && facts) return `facts ${facts[2]}`;
    const changed = [...checks, ...removed].filter(({ turned }) => turned === state).map(({ column }) => column);
    if (cluster === undefined && isOnlyLarge(each)) return `${kindOf(each)} ${[...new Set(contentOf(each).run.turns?.flatMap(({ calls = [] }) => calls.map(({ name }) => name)))].sort()}`;
    return cluster === undefined && !changed.length && !tools ? index : `${state} ${cluster ?? [...new Set(changed), tools]}`;
  };
  // Causes are numbered by how serious they are.
  const cause = ({ cluster = Infinity }) => cluster;
  return [...Map.groupBy(cases, keyOf).values()].map((each) => each.sort(byRank)).sort(([a, ...ones], [b, ...others]) => rank(a) - rank(b) || cause(a) - cause(b) || byFact(a, b) || others.length - ones.length);
}

/** The first of the cases of a group, and a line for each of the others, which follow in full when they are wanted. */
function comparedCases([first, ...others]) {
  const box = comparedCase(first, others.length);
  if (!others.length) return box;
  if (isPrinted) return [box, ...others.map((each) => comparedCase(each))];
  const open = () => {
    box.after(...others.map((each) => comparedCase(each)));
    rest.remove();
  };
  const lines = Map.groupBy(others.slice(0, MAX_CHANGED), (each) => make('p', memberLine(each, first, true)).textContent);
  const shown = [...lines.values()].slice(0, MAX_MEMBERS);
  const left = others.length - shown.flat().length;
  const rest = make(
    'div.answer',
    quiet(`${countOf(others.length, 'more case')} ${first.cluster !== undefined ? 'of the same cause' : first.facts ? 'with the same changed fact' : isOnlyLarge(first) ? 'with the same tools and kind of increase' : 'with the same changed checks'}:`),
    list([...shown.map((same) => [dot(same[0].status), make('span', caseAnchors(same.slice(0, MAX_NAMES)), same.length > MAX_NAMES && quiet(`, \u2026 and ${count(same.length - MAX_NAMES)} more`)), memberLine(same[0], first, same.length > 1)]), ...(left > 0 ? [[make('span'), quiet(`\u2026 and ${count(left)} more`)]] : [])], 'members'),
    make('button.btn', { onclick: open }, others.length > 1 ? `Show all ${count(others.length)} in full` : 'Show it in full'),
  );
  box.append(rest);
  return box;
}

// Of a group, without opening it: lines, and cases of which one line tells.
const MAX_MEMBERS = 10;
const MAX_NAMES = 5;

function caseAnchors(cases) {
  return cases.map((each, at) => [at ? ', ' : '', make('a', { href: caseHash(each, null, { with: 'base' }), 'data-case': each.index }, each.id)]);
}

/** A case of a group on one line: the first difference, evaluators that fail other than in its first case, and its amounts that grew. */
function memberLine(each, first, isJoined) {
  const failing = (one) => problemsOf(one).map(({ evaluator }) => evaluator.name);
  const [own, shown] = [failing(each), failing(first)];
  const more = own.filter((name) => !shown.includes(name));
  const less = shown.filter((name) => !own.includes(name));
  const { turns } = contentOf(each).run;
  const answer = turns.find(isAnswerChanged);
  const pieces = answer ? diffTexts(baselineOf(answer).answer ?? '', answer.answer ?? '').filter(([kind]) => kind !== '=').map(([kind, text]) => [kind, cutText(text, MAX_VALUES)]) : [];
  const grown = isJoined ? [] : shownAmounts().filter(([, , name, , least]) => !each.large?.[name] && isMore(name, least)(each));
  return [
    make('span.line', each.facts ? factsView(each.facts) : firstCall(turns) ?? (each.tools && toolError(each, turns)) ?? (answer && each.failed_facts ? factsView(each.failed_facts) : answer ? markedText(pieces, null).map((piece) => [piece, ' ']) : sameText(each))),
    more.length > 0 && quiet(`also ${more.join(', ')}`),
    less.length > 0 && quiet(`not ${less.join(', ')}`),
    each.large && pill('note', largeText(each)),
    grown.map(([, label, name, format, least]) => quiet(`${label} `, amountDelta(each.amounts[name], each.before[name], format, least))),
  ];
}

/** What a case shares with the baseline, if neither calls nor answers differ. */
function sameText(each) {
  if (!each.checks.length) return NOT_RUN;
  if (each.checks.every(({ before }) => !before)) return 'not in the baseline';
  if (each.not_compared) return 'answer and calls not compared: not in both runs';
  return !each.answer_changed && !each.calls_changed && !contentOf(each).run.turns?.some(({ missing, baseline }) => missing && baseline) && `same answer and calls as in the baseline${each.results_changed ? '; other tool results' : ''}`;
}

/** A case with its scores, calls and answers; of a group, with the number of its other cases. */
function comparedCase(each, others = 0) {
  const { turns = [] } = contentOf(each).run;
  const same = HAS_BASELINE && sameText(each);
  const changed = turns.filter(isAnswerChanged);
  const shown = (changed.length ? changed : turns).slice(0, MAX_TURNS);
  const rest = turns.filter((turn) => !shown.includes(turn));
  const views = (some) => some.map((turn) => answeredTurn(turn, turns.length > 1 && turns.indexOf(turn) + 1));
  return make(
    'section.card.turn.beside',
    { label: each.id, class: newlyFails(each) && 'worsened' },
    make(
      'header',
      dot(each.status),
      make('a', { href: caseHash(each, null, { with: HAS_BASELINE ? 'base' : undefined }), 'data-case': each.index }, make('b', each.id)),
      statePill(shownState(each), 'passed'),
      pillsOf(each),
      others > 0 && make(each.cluster === undefined ? 'span.pill.note' : 'a.pill.note', { href: each.cluster !== undefined && alikeHash(each) }, `${count(others + 1)} cases`),
      !turns.length && make('span.sub', each.question === each.id ? '' : each.question),
      same && make('span', same),
      make('span.end', comparedAmounts(each)),
    ),
    scoresOf(each),
    each.facts && make('p.first-call', quiet('Changed fact '), factsView(each.facts)),
    !same && make('p.first-call', firstCall(turns, HAS_BASELINE ? 'baseline' : 'expected')),
    each.tools && make('p.first-call', quiet('Tool error '), toolError(each, turns)),
    views(shown),
    rest.length > 0 && laterView('details.answer', countOf(rest.length, 'more turn'), () => views(rest), isPrinted),
  );
}

/** What a user asked, the tool calls on one line, and the answer: once if it is as in the baseline and as expected. */
function answeredTurn(turn, number) {
  const { user, answer = null, expected_answer: expected = answer, calls = [] } = turn;
  const base = baselineOf(turn);
  const isOther = expected !== null && expected !== answer;
  const reference = isAnswerChanged(turn) ? (isOther && expected !== base.answer ? 'both' : 'base') : isOther || (!base && expected === turn.expected_answer) ? 'expected' : 'off';
  return [
    make('div.ask', folded([number && `Turn ${number}: `, user], user.length)),
    calls.length > 0 && make('p.calls-line', quiet(calls.length > 1 ? 'Tool calls ' : 'Tool call '), make('span.mono', compareCalls(calls, calls).rows.map((row, at) => [at ? ', ' : '', callText(row, true)]))),
    make('div.answer', answerView(turn, base, reference)),
  ];
}
