// The page of one check.

function checkView(check, isMerged) {
  return [
    make(
      'p',
      { class: `outcome ${check.status}` },
      statusMark(check.status),
      ' ',
      check.headline,
      check.cached ? ' (cached)' : '',
    ),
    check.before === undefined || check.before === null
      ? null
      : make('p', {}, `Score in the baseline: ${number(check.before)}`),
    part('Failures', list(check.misses, 'misses')),
    part('Passed', list(check.hits, 'hits')),
    part('Reasoning', check.reasoning ? make('p', { class: 'prose' }, check.reasoning) : null),
    part(
      'Turns',
      turnsOf(check).map((turn) => turnView(turn, check.evaluator.threshold)),
    ),
    part('Trials', check.trials ? trialsView(check.trials) : null),
    part('Repeats', check.repeats ? repeatsView(check.repeats) : null),
    part('Warnings', list(check.case.warnings, 'warnings')),
    part('Details', factsView(check)),
    transcriptView(check, isMerged),
    check.details ? onDemand('Details as JSON', () => check.details) : null,
    check.case.performance
      ? onDemand('Latency and tokens as JSON', () => JSON.parse(check.case.performance))
      : null,
  ];
}

function part(title, content) {
  const shown = [content].flat().filter(Boolean);
  return shown.length ? [make('h2', {}, title), ...shown] : null;
}

function statusMark(status) {
  const icons = { passed: '\u2713', failed: '\u2715', errored: '!', skipped: '\u2013' };
  return make(
    'span',
    { class: `status ${status}` },
    make('span', { 'aria-hidden': 'true' }, `${icons[status]} `),
    status,
  );
}

/** The turns of a check: question and answer, score and tool calls. */
function turnsOf(check) {
  const dialogue = check.case.turns;
  const scores = check.turn_scores ?? [];
  const calls = comparedTurns(check.details);
  const length = Math.max(dialogue.length, scores.length, calls.length);
  return Array.from({ length }, (_, index) => ({
    number: index + 1,
    dialogue: dialogue[index],
    score: scores[index] ?? null,
    calls: calls[index] ?? null,
  }));
}

function turnView({ number: place, dialogue, score, calls }, threshold) {
  const low = score !== null && threshold !== null && score < threshold;
  return make(
    'article',
    { class: 'turn' },
    make(
      'h3',
      {},
      `Turn ${place}`,
      score === null
        ? null
        : make(
            'span',
            { class: low ? 'failed' : 'passed' },
            ` score ${number(score)}${low ? `, threshold ${number(threshold)}` : ''}`,
          ),
    ),
    dialogue
      ? make(
          'dl',
          { class: 'dialogue' },
          make('dt', {}, 'Question'),
          make('dd', {}, dialogue[0] || '(no question)'),
          make('dt', {}, 'Answer'),
          make('dd', {}, dialogue[1] ?? '(no answer)'),
        )
      : null,
    calls ? callsView(calls, place) : null,
  );
}

function callsView({ matched, rows, hidden }, place) {
  const title = matched ? 'Tool calls: as expected' : 'Tool calls: different';
  if (!rows.length) return make('p', {}, `${title} (none)`);
  const table = make(
    'table',
    { class: 'calls' },
    make('caption', { class: 'unseen' }, `Tool calls of turn ${place}`),
    make(
      'thead',
      {},
      make(
        'tr',
        {},
        ['Call', 'Expected', 'Actual'].map((each) => make('th', { scope: 'col' }, each)),
      ),
    ),
    make('tbody', {}, rows.map(callRow)),
  );
  return make(
    'details',
    { open: matched ? null : '' },
    make('summary', {}, title),
    table,
    hidden ? make('p', {}, `\u2026 and ${count(hidden)} more`) : null,
  );
}

function callRow(row) {
  const side = (call, which) =>
    make(
      'td',
      {},
      call
        ? [
            make('code', {}, call.name),
            make(
              'ul',
              { class: 'arguments' },
              row.arguments
                .filter((each) => each[which] !== null)
                .map((each) => argumentView(each, which)),
            ),
          ]
        : null,
    );
  return make(
    'tr',
    { class: row.mark || 'equal' },
    make('th', { scope: 'row' }, row.mark || 'equal'),
    side(row.expected, 'expected'),
    side(row.actual, 'actual'),
  );
}

function argumentView(argument, which) {
  const written = `${argument.name}${argument.name ? ' = ' : ''}${argument[which]}`;
  return make(
    'li',
    {},
    argument.differs ? make(which === 'expected' ? 'del' : 'ins', {}, written) : written,
  );
}

function trialsView({ strategy, trials, cost_limited: limited }) {
  const rows = trials.map((each) => [each.attempt + 1, scoreOf(each), each.reason ?? '']);
  return [
    make(
      'p',
      {},
      `Combined by ${strategy.replaceAll('_', ' ')}${limited ? '; stopped at the cost limit' : ''}.`,
    ),
    tableOf('trials', ['Trial', 'Score', 'Reason'], rows),
  ];
}

function repeatsView({ aggregation: by, repeats, flip_rate: rate }) {
  const rows = repeats.map((each, index) => [
    index + 1,
    statusMark(each.status),
    scoreOf(each),
    each.reason ?? '',
  ]);
  return [
    make('p', {}, `Combined by ${by}${rate === null ? '' : `; flip rate ${number(rate)}`}.`),
    tableOf('repeats', ['Repeat', 'Status', 'Score', 'Reason'], rows),
  ];
}

function scoreOf({ score }) {
  return score === null ? '-' : number(score);
}

function tableOf(kind, columns, rows) {
  return make(
    'table',
    { class: kind },
    make(
      'thead',
      {},
      make(
        'tr',
        {},
        columns.map((each) => make('th', { scope: 'col' }, each)),
      ),
    ),
    make(
      'tbody',
      {},
      rows.map((cells) =>
        make(
          'tr',
          {},
          cells.map((cell) => make('td', {}, cell)),
        ),
      ),
    ),
  );
}

function factsView({ id, seconds, cached, evaluator, case: ofCase }) {
  const facts = {
    Evaluator: `${evaluator.name} (${evaluator.type}), ${evaluator.required ? 'required' : 'advisory'}, ${evaluator.criterion}, weight ${number(evaluator.weight)}`,
    Config: evaluator.place,
    'Trace file': ofCase.file,
    'Trace ID': ofCase.trace,
    'Eval case':
      ofCase.eval_case ?? (ofCase.unmatched_reason ? `none: ${ofCase.unmatched_reason}` : 'none'),
    Duration: `${number(seconds)} s${cached ? ' (cached)' : ''}`,
    'Check ID': id,
  };
  return make(
    'dl',
    { class: 'facts' },
    Object.entries(facts).map(([name, value]) => [make('dt', {}, name), make('dd', {}, value)]),
  );
}
