// The conversation of a case: what the user wrote, what the agent did, beside its reference.

const MARK_WORDS = { '': 'Matches', differs: 'Arguments differ', unknown: 'Arguments not recorded', missing: 'Not called', unexpected: 'Unexpected' };
const BASELINE_WORDS = { ...MARK_WORDS, '': 'As in the baseline', unexpected: 'Not in the baseline' };
// Of a call that fails a check, beside its comparison with the baseline.
const FAILED_WORDS = { ...MARK_WORDS, '': '', differs: 'Not the expected arguments', moved: 'Not in the expected order' };

/** How a call differs; of a moved one, both of its places, counted from 1, and of a repeated one, how often each run has it. */
function callWord({ mark, place, from, times }, isBaseline) {
  if (mark === 'moved') return `Moved from place ${from} to ${place}`;
  if (isBaseline && times?.every(Boolean)) return `Called ${countOf(times[0], 'time')}, ${count(times[1])} in the baseline`;
  return (isBaseline ? BASELINE_WORDS : MARK_WORDS)[mark];
}

/** The result of a call on one line. */
function resultText({ result }) {
  return typeof result === 'string' || result === undefined ? result : jsonText(result);
}

/** Which references a run can be compared with, by name. */
function referencesOf(run) {
  const turns = run.turns ?? [];
  const hasExpected = turns.some((turn) => turn.expected_answer !== undefined || turn.expected_calls !== undefined);
  const hasBaseline = turns.some((turn) => turn.baseline !== undefined);
  return {
    ...(hasExpected ? { expected: 'Expected' } : {}),
    ...(hasBaseline ? { base: 'Baseline' } : {}),
    ...(hasExpected && hasBaseline ? { both: 'Both' } : {}),
    off: 'Off',
  };
}

/** The answer and calls of a turn in the baseline, as far as it keeps them with their results; null if it lacks the turn. */
function baselineOf(turn) {
  const { baseline, baseline_latency_ms, baseline_results: results = [] } = turn;
  if (baseline === undefined) return null;
  const { answer = null, calls = [], latency_ms } = baseline === 'same' ? { ...turn, latency_ms: baseline_latency_ms } : baseline;
  return { answer, latency_ms, calls: calls.map((call, at) => ({ name: call.name, arguments: call.arguments, old: results[at] === 'same' ? startOf(call) : results[at] })) };
}

/** The result of a call of this run, like that of one in the baseline. */
function startOf({ failed, ...call }) {
  return { start: resultText(call), left: 0, failed };
}

/** The result of a call in the baseline, unless it is as in this run, with what differs. */
function oldResult({ expected, actual }) {
  const { start, left = 0, failed } = expected?.old ?? {};
  const now = actual && startOf(actual);
  const isSame = now && !now.failed === !failed && (left ? now.start?.length === start.length + left && now.start.startsWith(start) : areSame(start, now.start));
  if ((start === undefined && !failed) || isSame) return null;
  const [pieces] = now?.start ? diffStart(start, left, now.start) : [[]];
  const isPart = pieces.some(([kind]) => kind === '=');
  return make('div.result.old', 'Baseline ', failed ? make('b', '! The tool failed ') : '', start !== undefined && ['\u2192 ', make('code', isPart ? markedText(pieces, '-') : start, notStored(left))]);
}

/** Whether two texts are the same, or the same JSON. */
function areSame(...texts) {
  const [one, other] = texts.map((text) => {
    try {
      return canonical(JSON.parse(text));
    } catch {
      return text;
    }
  });
  return one === other;
}

function notStored(left) {
  return left ? `\u2026 (${countOf(left, 'more character')} not stored)` : '';
}

function turnView(turn, index, { reference, scores, isFailed, findings }) {
  const base = baselineOf(turn);
  const latency = turn.latency_ms;
  const tokens = turn.tokens;
  return make(
    'section.card.turn',
    { class: turn.missing ? 'missing' : '', label: `Turn ${index + 1}` },
    make(
      'header',
      make('h2', `Turn ${index + 1}`),
      turn.missing && pill('failed', 'Missing in this run'),
      latency === undefined
        ? null
        : make('span', milliseconds(latency), ' ', amountDelta(latency, base?.latency_ms)),
      scores,
      tokens && make('span.end', `${count(tokens.input)} tokens in, ${count(tokens.output)} out`),
    ),
    step('User', turn.user ? folded([turn.user], turn.user.length) : quiet(turn.user_recorded === false ? 'not recorded' : 'no text')),
    callsStep(turn, base, reference, isFailed, findings),
    (turn.texts ?? []).length
      ? step('Before', make('details.fold', make('summary', `${countOf(turn.texts.length, 'text')} before the answer`), turn.texts.map((text) => make('p.text', text))))
      : null,
    step('Answer', answerView(turn, base, reference)),
    cutNote(turn.cut),
  );
}

function step(who, ...content) {
  return make('div.step', make('div.who', who), make('div', content));
}

function cutNote(cut) {
  const parts = Object.entries(cut ?? {}).map(([field, left]) => `${field}: ${count(left)} characters`);
  return parts.length ? make('p.gap', `Not stored: ${parts.join(', ')}.`) : null;
}

/** Give each call the findings of failed checks that name it: of calls with one name, those with an argument that it shows, and of these those that are not as expected. */
function addFindings(places, findings) {
  const rows = places.flatMap(({ gone, row = [] }) => [...gone, row].flat());
  for (const { evaluator, text } of findings) {
    const own = rows.filter(({ actual, expected }) => isNamed((actual ?? expected).name, text));
    const shown = own.filter(({ actual, expected }) => Object.entries((actual ?? expected).arguments ?? {}).some(([name, value]) => text.includes(`${name}=${jsonText(value)}`)));
    const named = shown.length ? shown : own;
    const marked = named.filter(({ mark }) => mark);
    for (const row of marked.length ? marked : named) (row.findings ??= []).push([make('code', evaluator.replaceAll('_', '_\u200b')), /^expected .*, got /s.test(text) ? ' tool calls differ' : prose(` ${text}`)]);
  }
}

function callsStep(turn, base, reference, isFailed, findings) {
  const actual = turn.calls ?? [];
  const expected = reference === 'expected' || reference === 'both' ? turn.expected_calls : undefined;
  const before = reference === 'base' || reference === 'both' ? base?.calls : undefined;
  if (turn.calls_recorded === false) return step('Tool calls', quiet('not recorded'));
  const first = compareCalls(turn.expected_calls ?? actual, actual);
  const wanted = callsByPlace(first.rows);
  addFindings(wanted, findings);
  const last = compareCalls(before ?? actual, actual);
  const hidden = hiddenNote(Math.max(first.hidden, last.hidden));
  if (expected && before && [actual, expected, before].some(({ length }) => length)) return step('Tool calls', bothReferences(wanted, callsByPlace(last.rows), isFailed), hidden);
  const isDecisive = expected || turn.missing;
  const look = { isCompared: expected ?? before, isBaseline: !isDecisive, isFailed: isFailed && isDecisive };
  const shown = expected ? wanted : callsByPlace(last.rows);
  const rows = shown.map(({ gone, row }, at) => {
    // What fails a check is shown beside each reference.
    const missing = expected ? [] : wanted[at].gone.filter((each) => each.findings);
    return [
      missing.map((each) => callRow(each, { isCompared: true })),
      gone.filter((each) => !missing.some((other) => same(other.expected, each.expected))).map((each) => callRow(each, look)),
      row && callRow(row, look, wanted[at].row),
    ];
  });
  return rows.flat(2).some(Boolean) && step('Tool calls', make('div.calls', rows), hidden);
}

function hiddenNote(hidden) {
  return hidden ? make('p.quiet', `\u2026 and ${count(hidden)} more`) : null;
}

/** Expected calls, those of this run, and those of the baseline in three columns, a call a row. */
function bothReferences(wanted, old, isFailed) {
  const places = Array.from({ length: Math.max(wanted.length, old.length) }, (_, at) => at);
  const none = () => make('div.call.none', quiet('\u2013'));
  const single = (row, side, isBaseline) => {
    if (!row?.expected) return none();
    return make('div.call', { class: callClass(isBaseline || row.mark ? row : {}, isFailed && !isBaseline) }, make('code', callText(row, false, side)), row.mark ? make('span.mark', callWord(row, isBaseline)) : null, oldResult(row));
  };
  const cells = places.flatMap((at) => {
    const [mine, theirs] = [wanted[at] ?? {}, old[at] ?? {}];
    const gaps = Array.from({ length: Math.max(mine.gone?.length ?? 0, theirs.gone?.length ?? 0) }, (_, index) => [
      single(mine.gone?.[index], '-'),
      none(),
      single(theirs.gone?.[index], '-', true),
    ]);
    const row = mine.row ?? theirs.row;
    if (!row) return gaps;
    return [
      ...gaps,
      [
        single(mine.row, '-'),
        callRow(row, { isCompared: true, side: '+', isFailed, isBaseline: !mine.row }, mine.row),
        single(theirs.row, '-', true),
      ],
    ];
  });
  return make('div.calls.three', ['Expected', 'This run', 'Baseline'].map((label) => make('h3', label)), cells);
}

/** For each call of this run, its row, and the calls of the reference that are missing before it. */
function callsByPlace(rows) {
  const found = [{ gone: [] }];
  for (const row of joinMoved(rows)) {
    if (!row.actual) found.at(-1).gone.push(row);
    else {
      found.at(-1).row = row;
      found.push({ gone: [] });
    }
  }
  return found;
}

/** The classes of a call: how it differs, and whether that fails the case or is as expected. */
function callClass({ mark, findings }, isFailed) {
  return [mark || 'equal', findings || (isFailed && mark) ? 'bad' : isFailed ? 'good' : ''].join(' ');
}

function callRow(row, { isCompared, isFailed, isBaseline, side = null }, { mark: failed, findings } = row) {
  const { mark, actual, expected } = row;
  // As the other reports count it.
  const isNewly = actual?.failed && caseNamed(here.id)?.tools?.includes(actual.name) && expected?.old && !expected.old.failed;
  const old = oldResult(row);
  const own = old && !mark ? 'Tool result differs' : callWord(row, isBaseline);
  // A failed call does not "match", although it is as expected.
  const word = isCompared && (mark || !actual?.failed || (!isNewly && isBaseline)) ? own : '';
  const state = actual?.failed ? `! The tool failed${isNewly ? ', unlike in the baseline' : ''}` : '';
  const result = actual?.result;
  const text = actual && resultText(actual);
  return make(
    'div.call',
    { class: callClass({ mark, findings }, isFailed) + (state && ' error') },
    make('div', make('code', callText(row, false, side)), make('span.mark', dotted(state, isBaseline && findings && failed !== mark && FAILED_WORDS[failed], word, actual?.ms === undefined ? '' : milliseconds(actual.ms)))),
    findings && list(findings, 'misses'),
    actual && result !== undefined && make('div.result', folded([unseen('result '), '\u2192 ', make('code', text)], text.length)),
    old,
  );
}

/** The answer beside its references: expected, this run, baseline. */
function answerView(turn, base, reference) {
  const actual = turn.missing ? null : (turn.answer ?? null);
  const none = quiet(turn.missing ? 'The run ends before this turn' : 'No answer in the trace');
  if (reference === 'off') return actual === null ? none : folded([actual], actual.length);
  const known = (text) => text !== undefined && text !== null;
  const compared = (text) => (known(text) && actual !== null ? diffTexts(text, actual) : null);
  const side = (label, text, missing) => {
    if (!known(text)) return pane(label, quiet(missing));
    const pieces = compared(text);
    return pane(label, pieces ? comparedText(pieces, '-') : folded([text], text.length));
  };
  const texts = [
    ...(reference === 'base' ? [] : [turn.expected_answer]),
    ...(reference === 'expected' ? [] : [base?.answer]),
  ];
  if (actual !== null && texts.every((text) => text === actual)) {
    const note = { expected: 'as expected', base: 'as in the baseline', both: 'as expected and in the baseline' }[reference];
    return pane('This run', folded([actual], actual.length), { isNow: true, note });
  }
  const pieces = compared(texts.find(known));
  const note = actual !== null && base?.answer === actual && 'as in the baseline';
  return make(
    'div.panes',
    reference === 'base' ? null : side('Expected', turn.expected_answer, 'No expected answer'),
    reference === 'base' && side('Baseline', base?.answer, base ? 'No answer' : 'The baseline lacks this turn'),
    pane('This run', actual === null ? none : pieces ? comparedText(pieces, '+') : folded([actual], actual.length), { isNow: true, note }),
    reference === 'both' && side('Baseline', base?.answer, base ? 'No answer' : 'The baseline lacks this turn'),
  );
}

function pane(label, content, { isNow = false, note = '' } = {}) {
  return make(
    'div.pane',
    { class: isNow ? 'now' : '' },
    make('h3', label, note ? make('span', note) : null),
    content,
  );
}
