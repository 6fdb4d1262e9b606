// The spans of a run, each below the one that started it: agents, model calls and tools.

const MAX_SPANS_SHOWN = 400;
// Spans that are deeper are not indented further.
const MAX_DEPTH = 6;

function timelineView(run, each) {
  const spans = run.spans ?? [];
  if (!spans.length) return null;
  const gone = (run.baseline_spans ?? []).map((span) => ({ ...span, isGone: true }));
  const rows = nested([...gone, ...spans].sort((a, b) => a.start_ms - b.start_ms));
  const pauses = pausesOf(run, spans);
  // Pauses between turns take no width.
  const place = (at) => at - pauses.reduce((sum, { start, ms }) => sum + (start <= at ? ms : 0), 0);
  const latest = Math.max(...rows.map(([span]) => place(span.start_ms) + Math.max(span.ms, span.before_ms ?? 0)), each.before?.ms ?? 0, 1);
  const unit = 10 ** Math.floor(Math.log10(latest / 4));
  // Four round steps.
  const end = 4 * unit * [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((step) => 4 * step * unit >= latest);
  const tick = (ms) => (end < 1000 ? `${number(ms)} ms` : `${number(ms / 1000)} s`);
  const kinds = ['agent', 'model', 'tool', 'other'].filter((kind) => spans.some((span) => span.kind === kind));
  const shown = rows.slice(0, MAX_SPANS_SHOWN);
  const left = rows.length - shown.length + (run.cut?.spans ?? 0);
  const parts = contentOfSpans(run);
  const hasBaseline = gone.length > 0 || spans.some((span) => span.before_ms !== undefined);
  const failed = new Set(everyTurn(run).flatMap(({ calls = [] }) => calls.filter((call) => call.failed).map((call) => call.span)));
  return make(
    'section.card.timeline',
    { 'aria-label': 'Timeline' },
    make(
      'div.head',
      make('h2', 'Timeline'),
      quiet(dotted(...[milliseconds(each.amounts.ms), each.amounts.tokens === undefined ? '' : `${count(each.amounts.tokens)} tokens`, dollars(each.amounts.usd)].filter((text) => text !== '\u2013'))),
      make('span.legend', kinds.map((kind) => make('span', make('i', { class: kind }), kind)), (hasBaseline || each.before?.ms !== undefined) && make('span', make('i.ghost'), 'baseline')),
    ),
    make('div.span.axis', { 'aria-hidden': 'true' }, make('span'), make('span.track', [0, 1, 2, 3].map((quarter) => make('span', tick((end * quarter) / 4)))), make('span.amounts', tick(end))),
    each.before?.ms === undefined || hasBaseline ? null : spanRow({ name: 'Whole run in the baseline', kind: 'ghost', ms: each.before.ms }, 0, 0, end),
    shown.map(([span, depth]) => [
      pauses.filter(({ next }) => next === span).map(({ real }) => make('p.pause', `${milliseconds(real)} pause between turns, not drawn`)),
      spanRow({ ...span, error: span.error || failed.has(span.id), isNew: hasBaseline }, depth, place(span.start_ms), end, parts.get(span.id)),
    ]),
    left > 0 && make('p.quiet', `\u2026 and ${countOf(left, 'more span')}`),
  );
}

/** Before the first span of a turn, the time in which no span ran, neither now nor with the duration of the baseline. */
function pausesOf({ turns = [] }, spans) {
  const firsts = new Set(turns.flatMap(({ span, steps = [] }) => [span, steps[0]?.span]));
  const found = [];
  let [until, ended] = [0, 0];
  for (const next of spans.toSorted((a, b) => a.start_ms - b.start_ms)) {
    const { id, start_ms: start, ms, before_ms: before = 0 } = next;
    if (start > until && until && firsts.has(id)) found.push({ next, start, ms: start - until, real: start - ended });
    until = Math.max(until, start + ms, start + before);
    ended = Math.max(ended, start + ms);
  }
  return found;
}

function everyTurn({ turns = [], subagents = [] }) {
  return [...turns, ...subagents.flatMap((agent) => agent.turns)];
}

/** By id of a span what went in and what came out, as far as the turns have it: term, value and text of the baseline. */
function contentOfSpans(run) {
  const found = new Map();
  for (const turn of everyTurn(run)) {
    const { span, user, answer, steps = [] } = turn;
    const base = baselineOf(turn);
    const calls = joinMoved(compareCalls(base?.calls ?? [], turn.calls ?? []).rows).filter(({ actual }) => actual);
    calls.push(...(turn.calls ?? []).slice(MAX_CALLS).map((actual) => ({ actual })));
    const given = ({ actual, expected }, term) => [term, actual.arguments, valueText(expected?.arguments)];
    const result = ({ actual, expected }, term = actual.failed ? 'Error' : 'Result') => [term, actual.result, startText(expected?.old)];
    const answered = ['Answer', answer, base?.answer];
    found.set(span, [['User', user], answered]);
    steps.forEach((step, index) => {
      const of = (place) => calls.filter(({ actual }) => actual.step === place);
      found.set(step.span, [
        ...(index ? of(index - 1).map((row) => result(row, `Result of ${row.actual.name}`)) : [['User', user]]),
        ...of(index).map((row) => given(row, `Call of ${row.actual.name}`)),
        index === steps.length - 1 ? answered : [],
      ]);
    });
    for (const row of calls) found.set(row.actual.span, [given(row, 'Arguments'), result(row)]);
  }
  return found;
}

/** Each span with its depth: after its parent, and among its siblings in the order given. */
function nested(spans) {
  const ids = new Set(spans.map(({ id }) => id));
  const children = Map.groupBy(spans, ({ parent }) => (ids.has(parent) ? parent : null));
  const rows = [];
  const left = (children.get(null) ?? []).map((span) => [span, 0]).reverse();
  while (left.length) {
    const [span, depth] = left.pop();
    rows.push([span, depth]);
    for (const child of (children.get(span.id) ?? []).reverse()) left.push([child, Math.min(depth + 1, MAX_DEPTH)]);
  }
  return rows;
}

/** A bar with times; with content, it opens to show that. */
function spanRow({ name, kind, ms, before_ms: before, tokens, model, error, isNew, isGone }, depth, start, end, parts = []) {
  const share = (value) => `${((100 * value) / end).toFixed(2)}%`;
  const label = model && !name.includes(model) ? `${name} ${model}` : name;
  const bar = (kind, ms) => make('i', { class: kind, style: { left: share(start), width: share(ms) } });
  const row = [
    make('span.name', { class: kind === 'tool' ? 'mono' : '', style: { 'padding-left': `${0.8 * depth}rem` } }, isGone ? make('del', label) : label, error && make('b.worse', ' failed')),
    make('span.track', { 'aria-hidden': 'true' }, before === undefined ? null : bar('ghost', before), bar(isGone ? 'ghost' : kind, ms)),
    make('span.amounts', tokens && !isGone ? quiet(`${count(tokens.input)} in, ${count(tokens.output)} out \u00b7 `) : null, milliseconds(ms), ' ', isGone ? quiet('only in the baseline') : before === undefined ? isNew && quiet('not in the baseline') : amountDelta(ms, before)),
  ];
  const known = parts.filter(([, value]) => value !== undefined && value !== null && value !== '');
  if (!known.length) return make('div.span', { class: isGone && 'gone' }, row);
  return make(
    'details',
    make('summary.span', row),
    make('dl.facts', known.map((part) => [make('dt', part[0]), comparedPart(part)])),
  );
}

function valueText(value) {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

/** One part of what went in or came out, with what differs in the baseline. */
function comparedPart([, value, old]) {
  const text = valueText(value);
  if (old === undefined || old === null) return make('dd', folded([text], text.length));
  if (areSame(old, text)) return make('dd', folded([text], text.length), quiet('as in the baseline'));
  const pieces = diffTexts(old, text);
  return [
    make('dd', comparedText(pieces, '+')),
    make('dt', 'Baseline'),
    make('dd', comparedText(pieces, '-')),
  ];
}
