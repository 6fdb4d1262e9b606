// The spans of a run, by their start: agents, model calls and tools.

const MAX_SPANS_SHOWN = 400;

function timelineView(run, each) {
  const spans = run.spans ?? [];
  if (!spans.length) return null;
  const end = Math.max(...spans.map((span) => span.start_ms + span.ms), each.before?.ms ?? 0, 1);
  const kinds = ['agent', 'model', 'tool', 'other'].filter((kind) => spans.some((span) => span.kind === kind));
  const depths = depthsOf(spans);
  const shown = spans.slice(0, MAX_SPANS_SHOWN);
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
    shown.map((span) => spanRow(span, depths.get(span.id) ?? 0, end)),
    left > 0 ? make('p.quiet', `\u2026 and ${countOf(left, 'more span')}`) : null,
  );
}

function depthsOf(spans) {
  const parents = new Map(spans.map((span) => [span.id, span.parent]));
  const depths = new Map();
  for (const { id } of spans) {
    let depth = 0;
    for (let at = parents.get(id); parents.has(at) && depth < 6; at = parents.get(at)) depth++;
    depths.set(id, depth);
  }
  return depths;
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
