// The spans of a run, each below the one that started it: agents, model calls and tools.

const MAX_SPANS_SHOWN = 400;
// Spans that are deeper are not indented further.
const MAX_DEPTH = 6;

function timelineView(run, each) {
  const spans = run.spans ?? [];
  if (!spans.length) return null;
  const end = Math.max(...spans.map((span) => span.start_ms + span.ms), each.before?.ms ?? 0, 1);
  const kinds = ['agent', 'model', 'tool', 'other'].filter((kind) => spans.some((span) => span.kind === kind));
  const shown = nested(spans).slice(0, MAX_SPANS_SHOWN);
  const left = spans.length - shown.length + (run.cut?.spans ?? 0);
  return make(
    'section.card.timeline',
    { 'aria-label': 'Timeline' },
    make(
      'div.head',
      make('h2', 'Timeline'),
      make('span.quiet', dotted(...[milliseconds(each.amounts.ms), each.amounts.tokens === undefined ? '' : `${count(each.amounts.tokens)} tokens`, dollars(each.amounts.usd)].filter((text) => text !== '\u2013'))),
      make('span.legend', kinds.map((kind) => make('span', make('i', { class: kind }), kind)), each.before?.ms === undefined ? null : make('span', make('i.ghost'), 'baseline')),
    ),
    each.before?.ms === undefined ? null : spanRow({ name: 'Whole run in the baseline', kind: 'ghost', start_ms: 0, ms: each.before.ms }, 0, end),
    shown.map(([span, depth]) => spanRow(span, depth, end)),
    left > 0 ? make('p.quiet', `\u2026 and ${countOf(left, 'more span')}`) : null,
  );
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

function spanRow({ name, kind, start_ms: start, ms, tokens, model, error }, depth, end) {
  const share = (value) => `${((100 * value) / end).toFixed(2)}%`;
  const label = model && !name.includes(model) ? `${name} ${model}` : name;
  return make(
    'div.span',
    make('span.name', { class: kind === 'tool' ? 'mono' : '', style: { 'padding-left': `${0.8 * depth}rem` } }, label, error ? make('b.worse', ' failed') : null),
    make('span.track', { 'aria-hidden': 'true' }, make('i', { class: kind, style: { left: share(start), width: share(ms) } })),
    make('span.amounts', tokens ? make('span.quiet', `${count(tokens.input)} \u2192 ${count(tokens.output)} \u00b7 `) : null, milliseconds(ms)),
  );
}
