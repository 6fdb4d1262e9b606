// What got worse, above the table: one card per cause, and one line for what else changed.

const MAX_CARDS = 4;
const MAX_LINES = 3;
const MAX_REASONS = 3;

function changesView() {
  const isFirst = (each) => alike(each)[0] === each;
  const firsts = CASES.filter(isFirst).sort(ORDERS.attention[1]);
  const byDrop = [...CASES].sort(ORDERS.drop[1]);
  const isFailure = (each) => each.status === 'failed' || each.status === 'errored';
  const main = firsts.filter((each) =>
    HAS_BASELINE ? each.state === 'new_failure' : isFailure(each),
  );
  main.sort((a, b) => alike(b).length - alike(a).length || worse(a, b));
  const known = HAS_BASELINE ? firsts.filter((each) => ['error', 'still_failing'].includes(each.state)) : [];
  const rest = [
    ...known.slice(0, MAX_LINES),
    ...(HAS_BASELINE ? ['score_fell', 'fixed'] : []).flatMap((state) => byDrop.filter((each) => each.state === state).slice(0, 1)),
  ];
  if (!main.length && !rest.length) return null;
  const more = main.length - MAX_CARDS;
  return make(
    'section',
    { 'aria-labelledby': 'changes' },
    make(
      'div.head',
      make('h2', { id: 'changes' }, HAS_BASELINE ? 'What changed' : 'Failures'),
      make('span.quiet', HAS_BASELINE ? `against the baseline ${baselineName()}` : noBaselineText()),
    ),
    make('div.changes', main.slice(0, MAX_CARDS).map(changeCard), rest.length ? restView(rest, known.length - MAX_LINES) : null),
    more > 0
      ? make('p.quiet', make('a', { href: writeHash('/', { f: HAS_BASELINE ? 'new' : 'failed', group: 'cause' }) }, `${countOf(more, 'more cause')} of failures`))
      : null,
  );
}

/** Checks that passed in the baseline, and are neither passed nor a failure of a case now. */
function worseView() {
  const worse = DATA.baseline?.worse;
  return worse?.length
    ? make('section.card.remarks', make('h2', 'Passed in the baseline, not in this run'), list(worse))
    : null;
}

function noBaselineText() {
  return DATA.baseline?.missing || 'no baseline: compared with what is expected only';
}

function problemsOf(each) {
  return each.checks
    .filter(({ status }) => status === 'failed' || status === 'errored')
    .sort((a, b) => STATUSES.indexOf(a.status) - STATUSES.indexOf(b.status) || (a.score ?? -1) - (b.score ?? -1));
}

function changeCard(each) {
  const problems = problemsOf(each);
  const { run } = contentOf(each);
  const differences = each.status === 'failed' && differencesOf(run);
  const others = alike(each).length - 1;
  return make(
    'article.card.change',
    make(
      'div.top',
      statePill(each.state, each.status),
      make('a.name', { href: caseHash(each) }, each.id),
      each.question && each.question !== each.id ? make('span.quiet', `\u201c${each.question}\u201d`) : null,
    ),
    make(
      'ul',
      problems.slice(0, MAX_REASONS).map((check) =>
        make(
          'li',
          dot(check.status),
          make('span', make('b', check.evaluator.name), ' ', make('span.quiet', reasonView(check, run, differences))),
          beforeAndNow(check),
        ),
      ),
      problems.length > MAX_REASONS ? make('li.quiet', `and ${count(problems.length - MAX_REASONS)} more`) : null,
    ),
    differences ? firstDifference(differences) : null,
    others > 0
      ? make('a.same', { href: writeHash('/', { f: FILTER_OF_STATE[each.state] ?? '', like: String(each.cluster) }) }, `${countOf(others, 'more case')} with the same failures`)
      : null,
  );
}

/**
 * The reason of a check. A metric that quotes both sides of a turn says what differs; the difference
 * itself follows unless the card shows one of its kind.
 */
function reasonView({ short, reason, evaluator }, run, differences) {
  if (!short) return (reason ?? `requires ${evaluator.criterion}`).replaceAll('`', '');
  const [, number, kind] = /^turn (\d+): the (tool calls|answer)/.exec(short) ?? [];
  const turn = run.turns?.[number - 1];
  if (!turn || !differences) return short;
  const [shown] = differences.found;
  const { call, answer } = differenceOf(turn, expectedOf(turn));
  if (kind === 'tool calls') return call && !shown?.call ? [`${short}: `, callExcerpt(call)] : short;
  if (!answer || shown?.answer) return short;
  const pieces = excerptOf(answer).pieces.filter(([mark]) => mark === '-' || mark === '+');
  return [`${short}: `, markedText(pieces, null)];
}

const expectedOf = (turn) => ({ calls: turn.expected_calls, answer: turn.expected_answer });

/**
 * The differences of the turns of a run that have any: to the baseline, without one or without a
 * difference to it to what is expected.
 */
function differencesOf(run) {
  const turns = run.turns ?? [];
  const hasBaseline = turns.some((turn) => turn.baseline !== undefined);
  const differing = (read) => turns.map((turn) => differenceOf(turn, read(turn))).filter(({ amount }) => amount);
  const found = hasBaseline ? differing((turn) => baselineOf(turn) ?? {}) : [];
  if (found.length) return { found, label: 'Baseline' };
  return { found: differing(expectedOf), isSame: hasBaseline, label: 'Expected' };
}

/** The first tool call and answer that differ, what the tool answered if it failed, and how many follow. */
function firstDifference({ found, isSame, label }) {
  const rows = isSame ? [['Baseline', 'the same calls and answers']] : [];
  const [first] = found;
  let shown = 0;
  if (first?.call) {
    rows.push(['Tool call', make('span.mono', callExcerpt(first.call, label === 'Baseline'))]);
    shown += 1;
  }
  if (first?.failed) rows.push(['Tool error', make('span.mono', `${first.failed.name}: `, cutText(resultText(first.failed)))]);
  if (first?.answer) {
    const { pieces, more } = excerptOf(first.answer);
    const texts = pieces.map((piece) => (piece[0] === '~' ? ['=', '\u2026 '] : piece));
    rows.push([label, markedText(texts, '-')]);
    rows.push(['This run', first.actual === null ? make('span.quiet', 'no answer') : markedText(texts, '+')]);
    shown += countDifferences(first.answer) - more;
  }
  if (!rows.length) return null;
  const left = found.reduce((sum, { amount }) => sum + amount, -shown);
  return make(
    'dl.first',
    rows.map(([name, value]) => [make('dt', name), make('dd', value)]),
    left > 0 ? make('dd.more-differences', moreDifferences(left)) : null,
  );
}

/** The differences of a turn: its first call, the first call that failed, its answer, and the number of all. */
function differenceOf(turn, { calls, answer: reference }) {
  const actual = turn.calls ?? [];
  const rows = calls ? joinMoved(compareCalls(calls, actual).rows).filter(({ mark }) => mark) : [];
  const isOther = reference != null && reference !== turn.answer;
  const answer = isOther ? diffTexts(reference, turn.answer ?? '') : null;
  const ofCalls = rows.reduce((sum, row) => sum + (row.mark === 'differs' ? leavesOf(row).length : 1), 0);
  return {
    call: rows[0],
    failed: actual.find(hasFailed),
    answer,
    actual: turn.answer ?? null,
    amount: ofCalls + (answer ? countDifferences(answer) : 0),
  };
}

/** Whether a tool failed: by its span, or by an error as its result. */
function hasFailed({ error, result }) {
  return result !== undefined && (error || (isObject(result) && Boolean(result.error)));
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

/** One line for a call that differs: of its arguments only the first leaf that does. */
function callExcerpt(row, isBaseline) {
  const { name } = row.actual ?? row.expected;
  const word = make('small', callWord(row, isBaseline));
  if (row.mark !== 'differs') return [callText(row, true), ' ', word];
  const [{ path, '-': before, '+': after }] = leavesOf(row);
  return [
    make('b', name),
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
  if (!values.length && call.arguments == null) return make('b', call.name);
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
    const [check] = [...each.checks.filter(({ turned }) => turned === each.state), ...problemsOf(each), ...each.checks];
    const all = each.cluster === undefined ? CASES.filter(({ state }) => state === each.state) : alike(each);
    return make(
      'a',
      { href: caseHash(each, check) },
      statePill(each.state, each.status),
      make('b', each.id, all.length > 1 ? make('span.quiet', ` +${count(all.length - 1)}`) : null),
      make('span', make('b', check.evaluator.name), ' ', make('span.quiet', (check.reason ?? '').replaceAll('`', ''))),
      beforeAndNow(check),
    );
  };
  return make(
    'div.card.rest',
    rest.map(row),
    more > 0 ? make('a', { href: writeHash('/', { f: 'still', group: 'cause' }) }, make('span.quiet', `${countOf(more, 'more cause')}`)) : null,
  );
}
