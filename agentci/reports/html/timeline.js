// The spans of a run, each below the one that started it: agents, model calls and tools.

const MAX_SPANS_SHOWN = 400;
// Spans that are deeper are not indented further.
const MAX_DEPTH = 6;
// Of the axis.
const STEPS = 4;

function timelineView(run, each) {
  const { spans = [], baseline_spans: gone = [] } = run;
  if (!spans.length) return null;
  const hasBaseline = gone.length > 0 || spans.some((span) => span.before_ms !== undefined);
  const then = each.before?.ms;
  const rows = nested([...gone.map((span) => ({ ...span, isGone: true, before_ms: span.ms, before_tokens: span.tokens, tokens: null })), ...spans].sort((a, b) => a.start_ms - b.start_ms));
  placeBars(rows, run);
  if (then !== undefined && !hasBaseline) rows.unshift({ id: '', name: 'Whole run in the baseline', kind: 'ghost', isGone: true, depth: 0, then: [0, then] });
  const latest = Math.max(...rows.flatMap(({ now, then }) => [now, then]).map(endOf), 1);
  const unit = 10 ** Math.floor(Math.log10(latest / STEPS));
  const end = STEPS * unit * [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((step) => STEPS * step * unit >= latest);
  const tick = (ms) => (end < 1000 ? `${number(ms)} ms` : `${number(ms / 1000)} s`);
  const kinds = ['agent', 'model', 'tool', 'other'].filter((kind) => spans.some((span) => span.kind === kind));
  const shown = rows.slice(0, MAX_SPANS_SHOWN);
  const left = rows.length - shown.length + (run.cut?.spans ?? 0);
  const parts = contentOfSpans(run);
  const failed = new Set(everyTurn(run).flatMap(({ calls = [] }) => calls.filter((call) => call.failed).map((call) => call.span)));
  const [most, sources] = findSlowdown(rows, each.amounts.ms - then);
  return make(
    'section.card.timeline',
    { label: 'Timeline' },
    make(
      'div.head',
      make('h2', 'Timeline'),
      quiet(then === undefined ? '' : `${milliseconds(then)} \u2192 `, milliseconds(each.amounts.ms), ' ', amountDelta(each.amounts.ms, then)),
      sources && make('span.most', sources),
      make('span.legend', kinds.map((kind) => make('span', make('i', { class: kind }), kind)), spans.some((span) => span.first_token_ms) && make('span', make('i.model', make('u')), 'until the first token'), then !== undefined && make('span', make('i.ghost'), 'baseline')),
    ),
    make('div.span.axis', { 'aria-hidden': 'true' }, make('span'), make('span.track', [0, 1, 2, 3, 4].map((step) => make('span', { style: { left: `${(100 * step) / STEPS}%` } }, tick((end * step) / STEPS)))), make('span.amounts', ['Tokens', 'Time', hasBaseline && 'Change'].map((head) => make('span', head)))),
    shown.map((row) => [
      row.turn && make('p.part', make('b', `Turn ${row.turn}`), row.pause > 0 && ` after a pause of ${milliseconds(row.pause)}, which is not drawn`),
      spanRow({ ...row, error: row.error || failed.has(row.id), isNew: hasBaseline && !row.then }, end, row === most && each.amounts.ms - then, parts.get(row.id)),
    ]),
    left > 0 && make('p.quiet', `\u2026 and ${countOf(left, 'more span')}`),
  );
}

const endOf = (bar) => (bar ? bar[0] + bar[1] : 0);

/**
 * Give each row its bars, of this run (`now`) and of the baseline (`then`), as start and duration from the
 * start of each run. Before the first span of a turn, the time in which no span ran takes no width.
 */
function placeBars(rows, { turns = [] }) {
  const firsts = new Map(turns.flatMap(({ span, steps = [] }, index) => [[steps[0]?.span, index + 1], [span, index + 1]]));
  let last = 0;
  for (const row of rows) {
    const turn = firsts.get(row.id) ?? (row.isGone && row.kind === 'agent' && !row.depth && last + 1);
    if (turn > last && turns.length > 1) row.turn = last = turn;
    row.now = row.isGone ? null : [row.start_ms, row.ms];
    row.then = row.before_ms === undefined ? null : [row.before_start_ms, row.before_ms];
  }
  for (const side of ['now', 'then']) {
    let [until, cut] = [0, 0];
    for (const row of rows.filter((each) => each[side]).sort((a, b) => a[side][0] - b[side][0])) {
      const pause = row[side][0] - until;
      if (row.turn > 1 && pause > 0) {
        cut += pause;
        if (side === 'now') row.pause = pause;
      }
      until = Math.max(until, endOf(row[side]));
      row[side] = [row[side][0] - cut, row[side][1]];
    }
  }
}

/** The row whose own time, without that of the steps in it, grew most, and the names of those that made the run slower. */
function findSlowdown(rows, slower) {
  if (!(slower >= 50)) return [];
  const own = (row, side) => {
    if (!row[side]) return 0;
    let [left, until] = [row[side][1], row[side][0]];
    for (const inner of rows.filter((each) => each.parent === row.id && each[side]).map((each) => each[side]).sort((a, b) => a[0] - b[0])) {
      left -= Math.max(0, Math.min(endOf(inner), endOf(row[side])) - Math.max(inner[0], until));
      until = Math.max(until, endOf(inner));
    }
    return left;
  };
  const grown = rows.map((row) => [own(row, 'now') - own(row, 'then'), row]).sort((a, b) => b[0] - a[0]);
  const byName = [...Map.groupBy(grown, ([, row]) => labelOf(row))].map(([name, found]) => [found.reduce((sum, [ms]) => sum + ms, 0), name, found.filter(([ms]) => ms >= 50).length]);
  const sources = byName.filter(([ms]) => ms >= slower / 4).sort((a, b) => b[0] - a[0]);
  return [grown[0][0] >= 50 && grown[0][1], sources.map(([ms, name, steps], index) => [index ? ', ' : 'mostly ', make('b', name), ' ', delta(ms, { format: milliseconds, good: -1 }), steps > 1 && ` in ${steps} steps`])];
}

/** The name of a step, with its model; of a tool without the operation. */
function labelOf({ name, kind, model }) {
  if (kind === 'tool') return name.replace(/^execute_tool (?=.)/, '');
  return model && !name.includes(model) ? `${name} ${model}` : name;
}

function everyTurn({ turns = [], subagents = [] }) {
  return [...turns, ...subagents.flatMap((agent) => agent.turns)];
}

/**
 * By id of a span what went in and what came out, as far as the turns have it: term, value and text of the baseline.
 * What a model call got from before is the part EARLIER: the messages of its conversation, and how many it got.
 */
function contentOfSpans(run) {
  const found = new Map();
  for (const turns of [run.turns ?? [], ...(run.subagents ?? []).map((agent) => agent.turns)]) {
    const messages = [];
    for (const turn of turns.filter(({ missing }) => !missing)) {
      const { span, user, answer, steps = [], texts = [] } = turn;
      const base = baselineOf(turn);
      const calls = joinMoved(compareCalls(base?.calls ?? [], turn.calls ?? []).rows).filter(({ actual }) => actual);
      calls.push(...(turn.calls ?? []).slice(MAX_CALLS).map((actual) => ({ actual })));
      const given = ({ actual, expected }, term = `Call of ${actual.name}`) => [term, actual.arguments ?? 'not recorded', valueText(expected?.arguments)];
      const resultTerm = ({ failed }) => (failed ? 'Error' : 'Result');
      const result = ({ actual, expected }, term = `${resultTerm(actual)} of ${actual.name}`) => [term, actual.result, expected?.old];
      const [asked, answered] = [['User', user], ['Answer', answer, base?.answer]];
      found.set(span, [[asked], [answered]]);
      let fresh = [asked];
      steps.forEach((step, index) => {
        const own = calls.filter(({ actual }) => actual.step === index);
        const requests = own.map((row) => given(row));
        found.set(step.span, [[[EARLIER, messages, messages.length], ...fresh], [...requests, ...(index === steps.length - 1 ? [answered] : [])]]);
        messages.push(...fresh, ...requests);
        fresh = own.map((row) => result(row));
      });
      const others = calls.filter(({ actual }) => !(actual.step < steps.length));
      messages.push(...fresh, ...others.flatMap((row) => [given(row), result(row)]), ...texts.map((text) => ['Text', text]), answered);
      for (const row of calls) found.set(row.actual.span, [[given(row, 'Arguments')], [result(row, resultTerm(row.actual))]]);
    }
  }
  return found;
}

const EARLIER = 'Earlier';
const isKnown = ([term, value, amount]) => (term === EARLIER ? amount : value !== undefined && value !== null && value !== '');

function partView(part) {
  const [term, messages, amount] = part;
  if (term !== EARLIER) return [make('dt', term), comparedPart(part)];
  const earlier = messages.slice(0, amount).filter(isKnown).map(([name, value]) => [name, folded([valueText(value)], valueText(value).length)]);
  return [make('dt', term), make('dd', laterView('details.fold', countOf(earlier.length, 'earlier message'), () => terms('dl.facts', earlier)))];
}

/** The spans with their depths, each after its parent, and among its siblings in the order given. */
function nested(spans) {
  const ids = new Set(spans.map(({ id }) => id));
  const children = Map.groupBy(spans, ({ parent }) => (ids.has(parent) ? parent : null));
  const rows = [];
  const left = (children.get(null) ?? []).map((span) => [span, 0]).reverse();
  while (left.length) {
    const [span, depth] = left.pop();
    rows.push({ ...span, depth });
    for (const child of (children.get(span.id) ?? []).reverse()) left.push([child, Math.min(depth + 1, MAX_DEPTH)]);
  }
  return rows;
}

/** The bars of a step with its times; with content, it opens to show that. */
function spanRow({ now, then, tokens, before_tokens: old, first_token_ms: first, before_first_token_ms: oldFirst, error, isNew, isGone, depth, ...span }, end, slower, parts = [[], []]) {
  const share = (value) => `${((100 * value) / end).toFixed(2)}%`;
  const label = labelOf(span);
  const bar = (found, kind, ...text) => found && make('i', { class: kind, style: { left: share(found[0]), width: share(found[1]) } }, text);
  const inAndOut = (each) => each && `${count(each.input)} in, ${count(each.output)} out`;
  const sum = (each) => each && each.input + each.output;
  const times = [now, then].map((found, at) => found && `${at ? 'baseline ' : ''}${milliseconds(found[0])} to ${milliseconds(endOf(found))}`);
  const row = [
    make('span.name', { class: span.kind === 'tool' ? 'mono' : '', style: { 'padding-left': `${0.8 * depth}rem` } }, isGone ? make('del', label) : isNew ? make('ins', label) : label, error && make('b.worse', ' failed')),
    make('span.track', { 'aria-hidden': 'true', title: times.filter(Boolean).join('; ') }, bar(now, `${span.kind}${error ? ' error' : ''}`, now && first && make('u', { style: { width: `${(100 * first) / now[1]}%` } }), error && '\u2715'), bar(then, 'ghost')),
    make(
      'span.amounts',
      make('span', tokens && [count(sum(tokens)), unseen(' tokens'), ' ', amountDelta(sum(tokens), sum(old), count, 1)]),
      ' ',
      make('span', milliseconds((now ?? then)[1])),
      ' ',
      make('span', isGone ? quiet('baseline only') : isNew ? quiet('this run only') : [now && then && amountDelta(now[1], then[1]), slower && now[1] - then?.[1] <= slower && quiet(` of ${milliseconds(slower)}`)]),
    ),
  ];
  const [input, output] = parts.map((some) => some.filter(isKnown));
  const look = { class: `${isGone ? 'gone' : ''} ${slower ? 'slowest' : ''}` };
  if (!input.length && !output.length) return make('div.span', look, row);
  if (first !== undefined) output.push(['First token', `after ${milliseconds(first)}`, oldFirst === undefined ? undefined : `after ${milliseconds(oldFirst)}`]);
  if (tokens) output.push(['Tokens', inAndOut(tokens), inAndOut(old)]);
  return make(
    'details',
    make('summary.span', look, row),
    [['Input', input], ['Output', output]].map(([name, some]) => some.length > 0 && [make('h3', name), make('dl.facts', some.map(partView))]),
  );
}

function valueText(value) {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

/** One part of what went in or came out, with what differs in the baseline: its text, or what is stored of a result. */
function comparedPart([, value, old]) {
  const text = valueText(value);
  const { start = null, left } = isObject(old) ? old : { start: old };
  // As the start is written.
  const now = isObject(old) ? resultText({ result: value }) : text;
  const isSame = left ? now.startsWith(start) : areSame(start, now);
  if (start === null || isSame) return make('dd', folded([text], text.length), isSame && quiet(left > 0 && `the first ${count(start.length)} characters are `, 'as in the baseline', notStored(left)));
  const [before, after] = diffStart(start, left, now);
  return [
    make('dd', comparedText(after, '+')),
    make('dt', 'Baseline'),
    make('dd', comparedText(before, '-'), notStored(left)),
  ];
}
