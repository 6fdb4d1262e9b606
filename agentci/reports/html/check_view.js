// The verdicts of a case: one box per check, worst first.

function checksView(each, content, chosen, isShown = () => true) {
  const boxes = each.checks
    .map((check, index) => ({ check, findings: content.checks[index] }))
    .filter(({ check }) => isShown(check))
    .sort((a, b) => isProblem(b.check) - isProblem(a.check));
  const removed = each.removed.filter(isShown);
  // The conversation below is close to the first of them; one error may be that of many checks.
  const isFolded = ({ check, findings }, at) => at > 0 && !isPrinted && check.evaluator.name !== chosen && (isStacked.matches ? isProblem(check) : check.status === 'errored' && findings.headline === boxes[at - 1].findings.headline);
  if (!boxes.length && !removed.length) return null;
  return make(
    'div.card.checks',
    make('h2.unseen', 'Checks'),
    removed.map(removedBox),
    boxes.map((box, at) => checkBox(each, content, box.check, box.findings, box.check.evaluator.name === chosen, isFolded(box, at))),
  );
}

function removedBox({ evaluator, before }) {
  return make(
    'article.check.errored',
    make('h3', dot('errored'), make('code', evaluator.name), pill('errored', LOST), make('span.num', 'removed')),
    make('p.small', make('span', 'only the baseline has this check'), make('span.num', `baseline ${score(before[1] ?? 1)}`)),
  );
}

function checkBox(each, content, check, findings, isChosen, isFolded) {
  const { evaluator, status, turned } = check;
  const { misses = [], hits = [], reasoning } = findings;
  const isReached = (miss) => findings.turn_scores?.[/^turn (\d+)/.exec(miss)?.[1] - 1] >= (evaluator.threshold ?? Infinity);
  const reasons = list(misses.map((miss, at) => make(isReached(miss) ? 'span.reached' : 'span', withTurn(shortMiss(miss, findings.short?.[at], content)))), 'misses');
  const known = misses.length ? [misses[0], check.reason] : [];
  const reasonsGiven = [status === 'failed' ? check.reason : '', reasoning].filter(Boolean);
  const texts = [...new Set(reasonsGiven)].filter((line) => !known.includes(line));
  const isUnchanged = status === 'passed' && !turned && !misses.length && !findings.trials && !findings.repeats && (!check.change || Math.abs(check.change) < MIN_CHANGE);
  const heading = make(
    'h3',
    dot(status),
    make('code', evaluator.name),
    turned === 'lost' ? pill('errored', LOST) : status !== 'errored' && statePill(turned, 'passed'),
    advisoryPill(evaluator),
    make('span.num', scoreWord(check)),
  );
  const facts = [
    factsOf({
      Config: evaluator.place,
      Duration: check.seconds ? `${number(check.seconds)} s${check.cached ? ' (cached)' : ''}` : check.cached ? 'cached' : '',
      Weight: evaluator.weight === 1 ? '' : number(evaluator.weight),
      'Check ID': check.id,
      'Run again': commandView(command('run', evaluator.config, '--only', evaluator.name, ...(each.id ? ['--case', each.id] : []))),
    }),
    findings.details && make('pre', { tabindex: 0 }, plain(JSON.stringify(findings.details, null, 2))),
  ];
  const fold = (label, content) => (isUnchanged ? content : make('details.fold', make('summary', label), content));
  const body = [
    meter(check),
    headlineOf(findings.headline, status, check.cached ? ' (cached)' : ''),
    reasons,
    texts.filter((line) => !findings.headline.includes(line)).map((line) => folded([make('p', prose(line))], line.length)),
    alignedTurns(findings.details).map(alignedView),
    findings.trials && trialsView(findings.trials),
    findings.repeats && repeatsView(findings.repeats),
    hits.length > 0 && fold(`${countOf(hits.length, 'finding')} passed`, list(hits.map(prose), 'hits')),
    make(
      'p.small',
      make('span', dotted(evaluator.type, evaluator.criterion, CONFIGS.length > 1 && evaluator.config)),
      check.before && make('span.num', `baseline ${check.before[1] === null ? check.before[0] : score(check.before[1])} `, delta(check.change)),
    ),
    fold('Details', facts),
  ];
  return make(
    'article.check',
    { class: `${turned === 'lost' ? 'errored' : status} ${isChosen ? 'chosen' : ''}`, id: `check-${check.id}`, 'data-check': evaluator.name },
    isUnchanged || isFolded ? make('details.fold', make('summary', heading), make('div.body', body)) : [heading, body],
  );
}

/** What a check came to; of a traceback, its last line, and the other lines folded. */
function headlineOf(text, status, note) {
  const last = status === 'errored' && /Traceback \(.*\n(.+)/s.test(text) && text.trimEnd().split('\n').at(-1);
  const whole = make('p.headline', text, note);
  return last ? [make('p.headline', last, note), make('details.fold', { open: isPrinted }, make('summary', 'Traceback'), whole)] : whole;
}

/** A finding that quotes both sides of a turn, without them where the conversation beside it shows them. */
function shortMiss(miss, short, { run, reference }) {
  const turn = run.turns?.[/^turn (\d+)/.exec(short)?.[1] - 1];
  const isShown = turn && !isStacked.matches && (reference === 'expected' || reference === 'both' || (reference === 'base' && (short.endsWith('calls differ') || baselineOf(turn)?.answer === turn.expected_answer)));
  return isShown ? short + (/ \([^()]+\)$/.exec(miss)?.[0] ?? '') : miss;
}

/** A finding whose turn leads there, if the conversation has several. */
function withTurn(finding) {
  const [, turn, number, rest] = /^(turn (\d+))(.*)/s.exec(finding) ?? [];
  const find = () => document.querySelector(`.split > .turns > [aria-label="Turn ${number}"]`);
  if (!number || number === '1') return prose(finding);
  return [make('button.link', { onclick: () => find()?.scrollIntoView() }, turn), prose(rest)];
}

function factsOf(facts) {
  return terms('dl.facts', Object.entries(facts).filter(([, value]) => value !== '' && value != null));
}

function commandView(text) {
  const shown = make('code', text);
  return [shown, ' ', copyButton(text, shown)];
}

/** The calls of a turn as the check `trajectory` aligned them, with what is wrong. */
function alignedView({ title, rows }) {
  return make(
    'div.aligned',
    make('h4', `Tool calls of ${title}`),
    make(
      'ul',
      rows.slice(0, MAX_CALLS).map(({ mark, expected, actual, note }) =>
        make(
          'li',
          { class: mark || 'equal' },
          make('span.mark', mark === 'missing' ? 'not called' : mark || 'as expected'),
          alignedTexts(mark, expected, actual),
          note && quiet(note),
        ),
      ),
    ),
    rows.length > MAX_CALLS && make('p.quiet', `\u2026 and ${count(rows.length - MAX_CALLS)} more`),
  );
}

// Shorter values are marked as a whole.
const MAX_VALUES = 60;

/** The texts of an aligned call: of one whose arguments differ, only these are marked. */
function alignedTexts(mark, expected, actual) {
  if (mark !== 'differs') return [mark !== 'missing' && actual ? null : expected && make('code', make('del', expected)), actual && make('code', mark === 'unexpected' || mark === 'forbidden' ? make('ins', actual) : actual)];
  // The evaluator lists only arguments that differ: `refund(amount: 19.99 \u2192 199.9)`.
  const parts = actual.split(/((?<=[(,] ?[^\s(:,"]+: ).+? \u2192 .+?(?=, [^\s:,"]+: |\)$))/);
  const marked = parts.map((text, index) => {
    if (index % 2 === 0) return text;
    const [before, after] = text.split(/\s\u2192\s(.*)/s);
    const pieces = before.length + after.length > MAX_VALUES ? diffTexts(before, after) : [];
    return pieces.some(([kind]) => kind === '=')
      ? [markedText(pieces, '-'), ' \u2192 ', markedText(pieces, '+')]
      : [make('del', unseen('expected '), before), ' ', make('ins', unseen('this run '), after)];
  });
  if (parts.length > 1) return make('code', marked);
  const pieces = diffTexts(expected, actual);
  return ['-', '+'].map((side) => make('code', markedText(pieces, side)));
}

function trialsView({ strategy, trials, cost_limited: limited }) {
  const rows = trials.map((each) => [each.attempt + 1, scoreOf(each), each.reason ?? '']);
  return [
    make('p', `Trials, combined by ${strategy.replaceAll('_', ' ')}${limited ? '; stopped at the cost limit' : ''}:`),
    tableOf('trials', ['Trial', 'Score', 'Reason'], rows),
  ];
}

function repeatsView({ aggregation: by, repeats, flip_rate: rate }) {
  const passed = repeats.filter(({ status }) => status === 'passed').length;
  const rows = repeats.map((each, index) => [
    index + 1,
    [dot(each.status), ' ', STATUS_WORDS[each.status]],
    scoreOf(each),
    each.reason ?? '',
  ]);
  const flips = rate == null ? '' : `, flip rate ${number(rate)}`;
  return [
    make('p', `${passed} of ${repeats.length} repeats passed (combined by ${by}${flips}):`),
    tableOf('repeats', ['Repeat', 'Status', 'Score', 'Reason'], rows),
  ];
}

function scoreOf({ score: value }) {
  return value == null ? '-' : number(value);
}
