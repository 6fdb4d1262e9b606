// The views of all evaluators: their scores, and their comparison with the baseline.

const BINS = 10;
const MAX_CHANGED = 50;

function evaluatorsView() {
  const several = CONFIGS.length > 1;
  const columns = DATA.columns ?? [];
  const rows = columns.map((column) => {
    const checks = checksOf(column);
    const status = column.failed ? 'failed' : column.errored ? 'errored' : column.passed ? 'passed' : 'skipped';
    const { type, criterion, required, place } = checks[0].evaluator;
    const evaluated = column.passed + column.failed + column.errored;
    return [
      [
        dot(status),
        ' ',
        make('a', { href: writeHash('/', { e: column.name }) }, make('b', column.name)),
        required ? null : [' ', pill('note', 'advisory')],
        make('div.quiet', dotted(type, criterion, place, several && column.config)),
      ],
      histogram(checks),
      evaluated ? `${count(column.passed)} of ${count(evaluated)}` : pill('errored', 'nothing evaluated'),
      column.errored ? count(column.errored) : '\u2013',
      column.skipped ? count(column.skipped) : '\u2013',
      column.mean || '\u2013',
      column.pass_rate || '\u2013',
    ];
  });
  const hasInterval = columns.some(({ mean, pass_rate: rate }) => `${mean}${rate}`.includes(' to '));
  const heads = ['Evaluator', 'Scores and threshold', 'Passed', 'Errors', 'Skipped', headOf('Mean score', hasInterval), headOf('Pass rate', hasInterval)];
  return [make('h1', 'Evaluators'), card('Evaluators', scrolled('Scores of evaluators', labelled(tableOf('wide', heads, rows), heads)))];
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
    { role: 'img', 'aria-label': `Scores: ${text.join(', ')}${threshold === null ? '' : '; threshold '}${number(threshold)}` },
    bins.map(({ passed, failed }) => make('span', failed ? make('i.failed', { style: height(failed) }) : null, passed ? make('i.passed', { style: height(passed) }) : null)),
    threshold === null || threshold < 0 || threshold > 1 ? null : make('b', { style: { left: `${100 * threshold}%` } }),
  );
}

function compareView() {
  const { baseline } = DATA;
  const title = make('h1', 'Comparison with the baseline');
  if (!baseline || (baseline.missing && !HAS_BASELINE)) {
    const text = baseline?.missing || 'This run was not compared with a baseline. Name one with the option baseline.';
    return [title, make('div.card.none', make('p', text))];
  }
  const ofCases = Object.entries({
    new: ['New failures', 'worse'],
    error: ['Errors', 'worse'],
    still: ['Still failing', 'worse'],
    lost: ['No longer evaluated', 'worse'],
    fell: [`Score fell \u2265 ${MIN_FALL}`, 'worse'],
    fixed: ['Fixed', 'better'],
    answer: ['Changed answers', ''],
    added: ['New cases', ''],
  }).map(([key, [label, colour]]) => {
    const found = CASES.filter(FILTERS[key][1]).length;
    if (!found) return null;
    return flow('a', { href: writeHash('/', { f: key }) }, label, found, colour, countOf(CASES.length, 'case'));
  });
  const classes = Object.entries(baseline.classes ?? {});
  const all = classes.reduce((sum, [, found]) => sum + found, 0);
  const ofChecks = classes.map(([name, found]) => flow('div', {}, name, found, '', countOf(all, 'check')));
  const columns = [...(DATA.columns ?? []), ...(baseline.removed ?? [])].filter((column) => column.baseline);
  const has = (name) => columns.some((column) => column.baseline[name] !== null);
  const heads = ['Evaluator', 'Mean score', headOf('Change', has('low')), 'Changed checks', 'Compared', has('p') ? 'Outcome (adjusted p)' : 'Outcome'];
  const rows = columns.map(comparedRow);
  return [
    make('div.head', title, make('code', baseline.name)),
    ofCases.some(Boolean) ? make('div.flows', { role: 'group', 'aria-label': 'Cases of this run' }, ofCases) : make('div.card.none', make('p', 'No case changed against the baseline.')),
    ofChecks.length ? make('div.flows.few', { role: 'group', 'aria-label': 'Checks of both runs' }, ofChecks) : null,
    rows.length ? card('Evaluators', scrolled('Scores by evaluator', labelled(tableOf('wide compared', heads, rows), heads))) : null,
    baseline.remarks.length ? make('section.card.remarks', make('h2', 'Remarks'), list(baseline.remarks.map(prose))) : null,
    lostView(),
    comparedAnswers(readShow()),
  ];
}

/** A tile with a number of all cases or checks. */
function flow(kind, attributes, label, found, colour, whole) {
  return make(`${kind}.card`, attributes, make('span', label), make('b', { class: colour }, count(found)), ' ', make('small', `of ${whole}`));
}

function signed(value) {
  const shown = number(Math.abs(value), 2);
  return shown === '0' ? shown : `${value < 0 ? '\u2212' : '+'}${shown}`;
}

/** What the comparison of answers shows, by name: label, and which cases. */
const SHOWN_ANSWERS = {
  changed: ['Changed answers', (each) => each.answer_changed],
  scores: ['Changed answers and scores', (each) => each.answer_changed && each.checks.some(({ turned, change }) => turned || Math.abs(change ?? 0) >= MIN_CHANGE)],
  all: ['All cases', () => true],
};

function readShow() {
  return Object.hasOwn(SHOWN_ANSWERS, here.params.show ?? '') ? here.params.show : 'changed';
}

function comparedRow(column) {
  const { before, after, lost, low, high, changed, label, reason, p, pairs, checks } = column.baseline;
  const change = before === null || after === null ? null : after - before;
  return [
    [column.isRemoved ? make('b', column.name) : make('a', { href: writeHash('/', { e: column.name }) }, make('b', column.name.replaceAll('_', '_\u200b'))), column.isRemoved ? [' ', pill('note', 'removed')] : null, CONFIGS.length > 1 ? make('div.quiet', column.config) : null],
    change === null ? (lost && before !== null ? `${score(before)} \u2192 ${lost}` : '\u2013') : scorePair(before, after),
    change === null
      ? '\u2013'
      : [
          delta(change, { format: (value) => number(value, value < 0.01 ? 3 : 2), least: 0.0005 }) ?? make('span.quiet', '\u00b10'),
          low === null ? null : make('span.quiet', ` (${signed(low)} to ${signed(high)})`),
        ],
    changed || '\u2013',
    `${count(pairs)} of ${count(checks)}`,
    [label, make('span.quiet', p === null ? '' : ` (${p})`, reason && `: ${reason}`)],
  ];
}

function comparedAnswers(shown) {
  const found = CASES.filter(SHOWN_ANSWERS[shown][1]).sort(ORDERS.attention[1]);
  const left = found.length - MAX_CHANGED;
  const chip = ([key, [label, test]]) =>
    make(
      'button.chip',
      { type: 'button', 'data-show': key, 'aria-pressed': String(key === shown), onclick: () => go(writeHash('/compare', { show: key })) },
      label,
      ' ',
      make('b', count(CASES.filter(test).length)),
    );
  return [
    make('div.head', make('h2', { id: 'answers' }, 'Answers'), make('div.chips', { role: 'group', 'aria-labelledby': 'answers' }, Object.entries(SHOWN_ANSWERS).map(chip))),
    found.length ? null : make('div.card.none', make('p', shown === 'all' ? 'No case.' : 'No answer changed.')),
    found.slice(0, MAX_CHANGED).map(comparedCase),
    left > 0 ? make('p.quiet', shown === 'all' ? `${countOf(left, 'more case')} are in the overview` : make('a', { href: writeHash('/', { f: 'answer' }) }, countOf(left, 'more case'))) : null,
  ];
}

function comparedCase(each) {
  const turns = contentOf(each).run.turns ?? [];
  const changed = turns.filter(isAnswerChanged);
  return make(
    'section.card.turn',
    { 'aria-label': each.id },
    make(
      'header',
      dot(each.status),
      make('a', { href: `${caseHash(each)}?with=base` }, make('b', each.id)),
      statePill(each.state, 'passed'),
      turns.length > 1 && changed.length ? make('span', `${count(changed.length)} of ${countOf(turns.length, 'turn')}`) : null,
      changed.length ? null : make('span', turns.some((turn) => turn.baseline) ? 'same answers' : 'not in the baseline'),
    ),
    changed.map((turn) => [
      turn.user ? make('p.ask', turn.user.slice(0, 300)) : null,
      make('div.answer', answerView(turn, baselineOf(turn), 'base')),
    ]),
  );
}
