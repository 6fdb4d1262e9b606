// What got worse, above the table: one card per cause, and one line for what else changed.

const MAX_LINES = 3;
// Causes that have a card or a line; the others are counted.
const MAX_CAUSES = 10;
const MAX_REASONS = 3;
const LOWER_OR_FIXED = ['changed_fact', 'large', 'lower_score', 'fixed'];

function changesView() {
  const isFirst = (each) => alike(each)[0] === each;
  const errored = CASES.filter((each) => each.status === 'errored' && isFirst(each)).sort(ORDERS.attention[1]);
  const errors = HAS_BASELINE ? [] : errored;
  const cards = [
    ...(DATA.causes ?? []).map((cause) => changeCard(CASES[cause.cases[0]], cause)),
    ...errors.slice(0, MAX_LINES).map((each) => changeCard(each, errorCause(each))),
  ];
  const lines = [
    ...causeLines(DATA.more_causes),
    ...(HAS_BASELINE ? errored : errors.slice(MAX_LINES)),
    ...causeLines(DATA.known, { state: 'still_failing' }),
  ];
  const most = MAX_CAUSES - cards.length;
  const [facts, ...others] = LOWER_OR_FIXED.map(linesOf);
  const rest = [facts.slice(0, MAX_LINES), lines.slice(0, most), others].flat(2);
  if (!cards.length && !rest.length) return null;
  return make(
    'section',
    { 'aria-labelledby': 'changes' },
    make(
      'div.head',
      make('h2', { id: 'changes' }, HAS_BASELINE ? 'What changed' : 'Failures'),
      !HAS_BASELINE && quiet(DATA.baseline?.missing || 'no baseline: compared with what is expected only'),
    ),
    make('div.changes', inColumns(cards), rest.length > 0 && restView(rest, [...facts.slice(MAX_LINES), ...lines.slice(most)])),
  );
}

/** The first case of each changed fact or kind of increase, with the number of cases and what they have in common; of lower scores and of fixed cases, the first. */
function linesOf(state) {
  const cases = CASES.filter(hasState(state)).sort(ORDERS.drop[1]);
  if (state === 'changed_fact') {
    const groups = Map.groupBy(cases.sort(byFact), factNumber);
    return [...groups].map(([number, [first, ...more]]) => ({ ...first, state, size: more.length + 1, facts: DATA.facts[number] ?? first.facts }));
  }
  if (state === 'large') {
    // Cases that are in no worse class come first.
    const groups = Map.groupBy(cases.sort((a, b) => rank(b) - rank(a) || largest(b) - largest(a)), kindOf);
    return [...groups.values()].filter(([first]) => STATES[rank(first)] === state).map((same) => ({ ...same[0], state, size: same.length }));
  }
  return cases.filter(({ facts }) => !facts).slice(0, 1).map((each) => ({ ...each, state }));
}

/** The first case of each cause, with the number of cases, and what happened. */
function causeLines(causes = [], others = {}) {
  return causes.map(([index, size, fact]) => ({ ...CASES[index], ...others, size, fact }));
}

function errorCause(each) {
  const cases = alike(each).map(({ index }) => index);
  return { cases, others: cases.length > 1 && `${countOf(cases.length - 1, 'more case')} with the same errors` };
}

/** Cards in two columns, where each has its own height: the next one goes to the column with less text. */
function inColumns(cards) {
  if (isNarrow.matches || isPrinted || cards.length < 2) return cards;
  const [left, right] = [make('div'), make('div')];
  for (const each of cards) (right.textContent.length < left.textContent.length ? right : left).append(each);
  return [left, right];
}

/** Evaluators that evaluate nothing now, and checks that only the baseline has evaluated. */
const REMOVED_CASES = '#/compare?show=removed';
const LOST_ROWS = listLost();

function listLost() {
  const rows = DATA.lost.checks.map(({ evaluator, change, reason, checks: amount, changed }) => ({
    label: LOST,
    name: evaluator,
    text: [`${change} (${amount})`, reason && `: ${reason}`, changed ? `; ${countOf(changed, 'case')} with a changed answer` : ''].join(''),
    href: COLUMNS.some((each) => each.name === evaluator) ? writeHash('/compare', { f: 'lost', e: evaluator }) : REMOVED_CASES,
  }));
  for (const column of DATA.columns ?? []) {
    const { name } = column;
    if (isEmpty(column) && !rows.some((row) => row.name === name)) rows.push({ label: 'Nothing evaluated', name, text: `${passedOf(column)}: ${checksOf(column)[0].reason ?? ''}`, href: writeHash('/', { e: name }) });
  }
  return rows;
}

function isEmpty({ passed, failed, errored }) {
  return !(passed + failed + errored);
}

/** What a gate that passed may hide, beside the verdict. */
function lostNotes(most) {
  const shown = LOST_ROWS.slice(0, most);
  const left = LOST_ROWS.length - shown.length + DATA.lost.more;
  return [
    shown.map(({ label, name, text, href }) => make('p.note', pill('errored', label), make('span', make('a', { href }, name), ' ', prose(text)))),
    left > 0 && make('p.note', make('a', { href: '#/compare' }, `${count(left)} more`)),
  ];
}

const hasOtherResults = ({ baseline_results: results = [] }) => results.some((each) => each !== 'same');
const isAnswerChanged = (turn) => turn.baseline && turn.baseline !== 'same' && (turn.baseline.answer ?? null) !== turn.answer;

function changeCard(each, { cases, first, ...likeness }) {
  const problems = problemsOf(each);
  const { run } = contentOf(each);
  return make(
    'article.card.change',
    make(
      'div.top',
      statePill(each.state, each.status),
      make('a.name', { href: caseHash(each) }, each.id),
      each.question && each.question !== each.id && quiet(`\u201c${each.question}\u201d`),
    ),
    make(
      'ul',
      problems.slice(0, MAX_REASONS).map((check) =>
        make(
          'li',
          dot(check.status),
          make('span', make('b', check.evaluator.name), advisoryPill(check.evaluator), ' ', quiet(reasonView(check, run, first))),
          beforeAndNow(check),
        ),
      ),
      problems.length > MAX_REASONS && make('li.quiet', `and ${countOf(problems.length - MAX_REASONS, 'more check')}`),
    ),
    first && firstDifference(first, run, each),
    likeCases(each, cases.slice(1), likeness),
  );
}

/** Facts of an answer in the baseline and now. */
function factsView([before, after]) {
  return [make('del', unseen('baseline '), before), ' \u2192 ', make('ins', unseen('this run '), after)];
}

/** The list of the cases of the same state, and of the same cause unless that is no failure. */
function alikeHash({ state, cluster }) {
  return writeHash(state === 'changed_fact' || state === 'large' ? '/compare' : '/', { f: CLASSES[state]?.[0] ?? '', like: LOWER_OR_FIXED.includes(state) ? '' : String(cluster) });
}

/** The cases that fail in the same way, each with the numbers in which it differs, and the others of the cause. */
function likeCases(each, cases, { others, notes = [], more, more_note: moreNote, similar }) {
  const noted = (text) => (text ? quiet(` (${text})`) : '');
  const names = notes.map((text, at) => [at ? ', ' : ': ', make('a', { href: caseHash(CASES[cases[at]]) }, CASES[cases[at]].id), noted(text)]);
  const link = (text) => make('a', { href: alikeHash(each) }, text);
  return [
    others && make('p.same', link(others), names, more ? [`, \u2026 and ${count(more)} more`, noted(moreNote)] : null),
    similar && make('p.same', link(similar)),
  ];
}

/**
 * The reason of a check. A metric that quotes both sides of a turn says what differs; the difference
 * itself follows unless the card shows one of its kind.
 */
function reasonView({ short, reason, evaluator }, run, first) {
  if (!short) return (reason ?? `requires ${evaluator.criterion}`).replaceAll('`', '');
  const [, number, kind] = /^turn (\d+): the (tool calls|answer)/.exec(short) ?? [];
  const turn = run.turns?.[number - 1];
  if (!turn || first?.[kind === 'answer' ? 'answer' : 'calls']) return short;
  if (kind === 'tool calls') {
    const [call] = differingCalls(turn, 'expected');
    return call ? [`${short}: `, callExcerpt(call)] : short;
  }
  if (turn.expected_answer == null) return short;
  const pieces = excerptOf(diffTexts(turn.expected_answer, turn.answer ?? ''));
  return [`${short}: `, markedText(pieces.filter(([mark]) => mark === '-' || mark === '+'), null)];
}

/**
 * What the comment shows of a run: turns that are missing, tool calls and the first answer that
 * differ, and how many more do; besides, what the tool answered if it failed.
 */
function firstDifference({ missing, calls, answer, more }, run, each) {
  const rows = missing ? [['Turns', missing]] : [];
  const { turns } = run;
  if (turns.every(({ missing: isLost, baseline }) => baseline === 'same' || (isLost && !baseline))) rows.push(['Baseline', `the same calls and answers${turns.some(hasOtherResults) ? '; other tool results' : ''}`]);
  const of = (number) => (turns.length > 1 ? ` (turn ${number})` : '');
  turns.forEach((turn, index) => {
    const before = turn.missing && baselineOf(turn);
    if (before) rows.push([`Baseline${of(index + 1)}`, differingCalls(turn, 'baseline').map((row) => make('div.mono', callExcerpt(row, true))), before.answer && make('del', cutText(before.answer))]);
  });
  for (const [number, reference, places] of calls ?? []) {
    const turn = turns[number - 1];
    const found = differingCalls(turn, reference);
    const shown = places.flatMap((place) => found[place] ?? []);
    rows.push([`Tool call${of(number)}`, shown.map((row) => make('div.mono', callExcerpt(row, reference === 'baseline')))]);
  }
  const error = toolError(each, turns);
  if (error) rows.push(['Tool error', error]);
  if (answer) rows.push(...answerRows(turns[answer[0] - 1], answer[1], of(answer[0])));
  return terms('dl.first', rows, more && make('dd.more-differences', more));
}

/** What the first tool that failed answered; where tools newly fail, one of these. */
function toolError({ tools }, turns = []) {
  const failed = turns.flatMap(({ calls = [] }) => calls).find(({ failed, name, result }) => failed && result !== undefined && (!tools || tools.includes(name)));
  return failed && make('span.mono', `${failed.name}: `, cutText(resultText(failed)));
}

/** The answer of a turn beside its reference; where that is the expected one, beside another one of the baseline, too. */
function answerRows(turn, reference, of = '') {
  const answers = { expected: turn.expected_answer, baseline: baselineOf(turn)?.answer };
  const excerpt = (name) =>
    excerptOf(diffTexts(answers[name] ?? '', turn.answer ?? '')).map((piece) => (piece[0] === '~' ? ['=', '\u2026 '] : piece));
  const pieces = excerpt(reference);
  const isOther = reference === 'expected' && answers.baseline != null && answers.baseline !== answers.expected && isAnswerChanged(turn);
  return [
    [reference === 'expected' ? `Expected${of}` : `Baseline${of}`, markedText(pieces, '-')],
    isOther ? ['Baseline', markedText(excerpt('baseline'), '-')] : null,
    ['This run', turn.answer == null ? quiet('no answer') : markedText(pieces, '+')],
  ].filter(Boolean);
}

/** The calls of a turn that differ from the expected ones or those of the baseline. */
function differingCalls(turn, reference) {
  const calls = reference === 'expected' ? turn.expected_calls : baselineOf(turn)?.calls;
  return calls ? joinMoved(compareCalls(calls, turn.calls ?? []).rows).filter(({ mark }) => mark) : [];
}

/** The leaves of the arguments that differ: by path, what each side has. */
function leavesOf(row) {
  const leaves = new Map();
  for (const { pieces } of row.arguments) {
    for (const [kind, text, path] of pieces) {
      if (kind === '=') continue;
      const leaf = leaves.get(path) ?? { path, '-': '', '+': '' };
      leaf[kind] += text;
      leaves.set(path, leaf);
    }
  }
  return [...leaves.values()];
}

/** One line for a call that differs: the first leaves of its arguments that do, those of one side before changed ones. */
function callExcerpt(row, isBaseline) {
  const { name } = row.actual ?? row.expected;
  const word = make('small', callWord(row, isBaseline));
  if (row.mark !== 'differs') return [callText(row, true), ' ', word];
  const isChanged = (leaf) => (leaf['-'] && leaf['+'] ? 1 : 0);
  const leaves = leavesOf(row).sort((a, b) => isChanged(a) - isChanged(b));
  const left = leaves.length - MAX_REASONS;
  return [make('b', name), leaves.slice(0, MAX_REASONS).map((leaf, at) => [at ? ',' : '', leafView(leaf)]), left > 0 && make('small', ` and ${count(left)} more`)];
}

function leafView({ path, '-': before, '+': after }) {
  return [
    path ? ` ${path}: ` : ' ',
    before ? make('del', unseen('reference '), cutText(before)) : '',
    before && after ? ' ' : '',
    after ? make('ins', unseen('this run '), cutText(after)) : '',
  ];
}

/**
 * A call with its arguments, of which the leaves that differ are marked on both sides, or on one.
 *
 * `isShort` leaves out equal arguments beyond a line.
 */
function callText({ mark, expected, actual, arguments: values }, isShort = false, side = null) {
  const call = (side === '-' ? expected : actual) ?? expected ?? actual;
  if (call.arguments == null && (mark === 'unknown' || !values.length)) return make('b', call.name);
  const whole = values.map(({ name, pieces }, index) => [
    index ? ', ' : '',
    name ? `${name}: ` : '',
    isShort ? pieces.map(([, text]) => text).join('').slice(0, CONTEXT) : markedText(pieces, side),
  ]);
  const shown = [make('b', call.name), '(', whole, ')'];
  if (mark === 'missing') return make('del', shown);
  return mark === 'unexpected' ? make('ins', shown) : shown;
}

function restView(rest, more) {
  const row = (each) => {
    const check = each.checks.find(({ turned }) => turned === each.state) ?? each.checks[0];
    const others = (each.size ?? (LOWER_OR_FIXED.includes(each.state) ? CASES.filter(hasState(each.state)) : alike(each)).length) - 1;
    return make(
      'a',
      { href: others ? alikeHash(each) : caseHash(each, check) },
      statePill(each.state, each.status),
      make('b', each.id, others > 0 && quiet(` and ${count(others)} more`)),
      each.state === 'changed_fact'
        ? make('span', factsView(each.facts))
        : each.state === 'large' || !check ? make('span', check ? [each.size > 1 && 'largest: ', largeText(each)] : NOT_RUN) : [make('span', make('b', check.evaluator.name), advisoryPill(check.evaluator), ' ', quiet(each.fact ? prose(each.fact) : (check.short ?? check.reason ?? `requires ${check.evaluator.criterion}`).replaceAll('`', ''))), beforeAndNow(check)],
    );
  };
  return make(
    'div.card.rest',
    rest.map(row),
    [...Map.groupBy(more, ({ state }) => CLASSES[state]?.[0])].map(([f, causes]) =>
      make('a', { href: f === 'facts' ? alikeHash(causes[0]) : writeHash('/', { f, group: 'cause' }) }, statePill(causes[0].state, causes[0].status), make('b', countOf(causes.length, f === 'facts' ? 'more changed fact' : 'more cause'))),
    ),
  );
}
