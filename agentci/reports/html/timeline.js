// The spans of a run, each below the one that started it: agents, model calls and tools.

const MAX_SPANS_SHOWN = 400;
// Spans that are deeper are not indented further.
const MAX_DEPTH = 6;

function timelineView(run, each) {
  const spans = run.spans ?? [];
  if (!spans.length) return null;
  const rows = nested(spans);
  const pauses = pausesOf(run, rows);
  // Pauses between turns take no width.
  const place = (at) => at - pauses.reduce((sum, { start, ms }) => sum + (start <= at ? ms : 0), 0);
  const end = Math.max(...spans.map((span) => place(span.start_ms) + Math.max(span.ms, span.before_ms ?? 0)), each.before?.ms ?? 0, 1);
  const kinds = ['agent', 'model', 'tool', 'other'].filter((kind) => spans.some((span) => span.kind === kind));
  const shown = rows.slice(0, MAX_SPANS_SHOWN);
  const left = spans.length - shown.length + (run.cut?.spans ?? 0);
  const parts = contentOfSpans(run);
  return make(
    'section.card.timeline',
    { 'aria-label': 'Timeline' },
    make(
      'div.head',
      make('h2', 'Timeline'),
      quiet(dotted(...[milliseconds(each.amounts.ms), each.amounts.tokens === undefined ? '' : `${count(each.amounts.tokens)} tokens`, dollars(each.amounts.usd)].filter((text) => text !== '\u2013'))),
      make('span.legend', kinds.map((kind) => make('span', make('i', { class: kind }), kind)), each.before?.ms === undefined ? null : make('span', make('i.ghost'), 'baseline')),
    ),
    make('div.span.axis', { 'aria-hidden': 'true' }, make('span'), make('span.track', [0, 1, 2, 3].map((quarter) => make('span', milliseconds((end * quarter) / 4)))), make('span.amounts', milliseconds(end))),
    each.before?.ms === undefined || spans.some((span) => span.before_ms !== undefined) ? null : spanRow({ name: 'Whole run in the baseline', kind: 'ghost', ms: each.before.ms }, 0, 0, end),
    shown.map(([span, depth]) => [
      pauses.filter(({ next }) => next === span).map(({ real }) => make('p.pause', `${milliseconds(real)} pause between turns, not drawn`)),
      spanRow(span, depth, place(span.start_ms), end, parts.get(span.id)),
    ]),
    left > 0 && make('p.quiet', `\u2026 and ${countOf(left, 'more span')}`),
  );
}

/** Before the first span of a turn, the time in which no span ran, neither now nor with the duration of the baseline. */
function pausesOf({ turns = [] }, rows) {
  const firsts = new Set(turns.flatMap(({ span, steps = [] }) => [span, steps[0]?.span]));
  const found = [];
  let [until, ended] = [0, 0];
  for (const next of rows.map(([span]) => span).sort((a, b) => a.start_ms - b.start_ms)) {
    const { id, start_ms: start, ms, before_ms: before = 0 } = next;
    if (start > until && until && firsts.has(id)) found.push({ next, start, ms: start - until, real: start - ended });
    until = Math.max(until, start + ms, start + before);
    ended = Math.max(ended, start + ms);
  }
  return found;
}

/** By id of a span what went in and what came out, as far as the turns have it. */
function contentOfSpans({ turns = [], subagents = [] }) {
  const found = new Map();
  for (const { span, user, answer, calls = [], steps = [] } of [...turns, ...subagents.flatMap((agent) => agent.turns)]) {
    const results = (step) => calls.filter((call) => call.step === step).map((call) => [`Result of ${call.name}`, call.result]);
    found.set(span, [['User', user], ['Answer', answer]]);
    steps.forEach((step, index) => {
      const asked = calls.filter((call) => call.step === index).map((call) => [`Call of ${call.name}`, call.arguments ?? {}]);
      const given = index ? results(index - 1) : [['User', user]];
      found.set(step.span, [...given, ...asked, index === steps.length - 1 ? ['Answer', answer] : []]);
    });
    for (const call of calls) found.set(call.span, [['Arguments', call.arguments], [call.error ? 'Error' : 'Result', call.result]]);
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
function spanRow({ name, kind, ms, before_ms: before, tokens, model, error }, depth, start, end, parts = []) {
  const share = (value) => `${((100 * value) / end).toFixed(2)}%`;
  const label = model && !name.includes(model) ? `${name} ${model}` : name;
  const bar = (kind, ms) => make('i', { class: kind, style: { left: share(start), width: share(ms) } });
  const row = [
    make('span.name', { class: kind === 'tool' ? 'mono' : '', style: { 'padding-left': `${0.8 * depth}rem` } }, label, error ? make('b.worse', ' failed') : null),
    make('span.track', { 'aria-hidden': 'true' }, before === undefined ? null : bar('ghost', before), bar(kind, ms)),
    make('span.amounts', tokens ? quiet(`${count(tokens.input)} in, ${count(tokens.output)} out \u00b7 `) : null, milliseconds(ms), ' ', before === undefined ? null : delta(ms - before, { format: milliseconds, good: -1, least: 50 })),
  ];
  const known = parts.filter(([, value]) => value !== undefined && value !== null && value !== '');
  if (!known.length) return make('div.span', row);
  const text = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 2));
  return make(
    'details',
    make('summary.span', row),
    make('dl.facts', known.map(([term, value]) => [make('dt', term), make('dd', folded([text(value)], text(value).length))])),
  );
}
