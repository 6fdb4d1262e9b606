// The page of one case: conversation at the left, verdicts at the right.

function caseView(id, params) {
  const each = caseNamed(id);
  const removed = !each?.checks.length && DATA.baseline?.removed_cases?.find(([name]) => name === id);
  if (removed) return removedCaseView(removed, each);
  if (!each) {
    return [
      make('h1', 'Case not found'),
      make('div.card.none', make('p', `There is no case \u201c${id}\u201d in this report.`), make('a', { href: '#/' }, 'All cases')),
    ];
  }
  const { run } = contentOf(each);
  const references = referencesOf(run);
  const reference = chooseReference(each, references, params);
  const content = { ...contentOf(each), reference };
  const isOneColumn = isStacked.matches || isPrinted;
  return [
    make('div.casehead', caseNav(each), caseTitle(each), compareBar(each, references, reference, params)),
    make(
      'div.split',
      { class: newlyFails(each) && 'worsened' },
      isOneColumn && checksView(each, content, params.check, isProblem),
      make('div.turns', contentNote(run), conversation(run, each, content, reference), subagentsView(run)),
      isOneColumn
        ? checksView(each, content, params.check, (check) => !isProblem(check))
        : make('aside.side', { label: 'Checks', tabindex: 0 }, checksView(each, content, params.check), caseFacts(each, content)),
      make('div.turns', timelineView(run, each), isOneColumn ? caseFacts(each, content) : null, columnsView(run), callsCard(each)),
    ),
  ];
}

/** A case that only the baseline has, with its run there. */
function removedCaseView([id, checks, words, block], each) {
  const { turns = [] } = contentOf({ block }).run;
  const passed = checks.length > 0 && `; it passed ${countOf(checks.length, 'check')}: ${checks.map(([name, before]) => `${name} ${score(before ?? 1)}`).join(', ')}`;
  return [
    make('div.casehead', caseNav(each), make('div.head', make('h1', id), pill('errored', words))),
    (DATA.messages ?? []).filter(({ text }) => text.includes(`\`${id}\``)).map(messageRow),
    make('p', 'Only the baseline has a run of this case', passed, turns.length ? '.' : '. Its content is not stored.'),
    make('div.turns', turns.map((turn, index) => turnView(turn, index, { reference: 'off', isFailed: false, scores: null, findings: [] }))),
  ];
}

/** The chosen reference: by default the baseline if the case changed, else what is expected. */
function chooseReference({ state, checks, answer_changed: changed }, references, params) {
  const [first] = Object.keys(references);
  const isChanged = ['new_failure', ...LOWER_OR_FIXED].includes(state) || checks.some(({ turned }) => turned === 'error') || (changed && state !== 'still_failing');
  const usual = isChanged && references.base ? 'base' : first;
  return Object.hasOwn(references, params.with ?? '') ? params.with : usual;
}

/** A case that is compared with the same reference as this one. */
function caseHashLikeThis(each) {
  return caseHash(each, null, { with: here.params.with });
}

/** What the list is called that a case was opened from. */
function listName() {
  const { view, params } = readHash(backHash);
  if (view === 'compare') return HAS_BASELINE ? 'Comparison' : 'Answers';
  const { filter, query, like, evaluator } = readSelection(params);
  return filter === 'all' && (query || like || evaluator) ? 'Selected cases' : FILTERS[filter][0];
}

/** The next or previous case of the list that got worse, or without a baseline that failed. */
function nextWorse(each, by) {
  const at = shownCases.indexOf(each);
  const others = by > 0 ? shownCases.slice(at + 1) : shownCases.slice(0, Math.max(0, at)).reverse();
  return others.find(HAS_BASELINE ? isWorse : needsLook);
}

function caseNav(each) {
  const at = shownCases.indexOf(each);
  const worse = nextWorse(each, 1);
  const link = (to, text, label) =>
    to
      ? make('a.btn', { href: caseHashLikeThis(to), label }, text)
      : make('span.btn', { 'aria-disabled': 'true', role: 'link', label }, text);
  return make(
    'nav.crumb',
    { label: 'Cases' },
    make('a', { href: backHash }, `\u2190 ${listName()}`),
    at < 0 ? null : quiet(`${count(at + 1)} of ${count(shownCases.length)}`),
    make('div.tools', copyButton(location.href, null, 'Copy link'), worse && worse !== shownCases[at + 1] ? link(worse, `Next ${HAS_BASELINE ? 'regression' : 'failure'} \u00bb`) : null, link(at < 0 ? null : shownCases[at - 1], '\u2039 Previous', 'Previous case'), link(at < 0 ? null : shownCases[at + 1], 'Next \u203a', 'Next case')),
  );
}

function caseTitle(each) {
  const link = (f, shown) => make('a', { href: writeHash('/', { f }) }, shown);
  return make(
    'div.head',
    make('h1', each.id || '(no name)'),
    link(CLASSES[each.state]?.[0] ?? (each.status === 'errored' ? 'error' : each.status), statePill(each.state, each.status) ?? pill(each.status, STATUS_WORDS[each.status])),
    each.facts && [link('facts', pill('note', 'Changed fact')), make('span', factsView(each.facts))],
    each.answer_changed && !each.facts && link('answer', pill('note', 'Answer changed')),
    each.large && link('large', pill('note', largeText(each))),
    HAS_BASELINE && make('span', sameText(each)),
    each.tags.map((tag) => make('a.quiet', { href: writeHash('/', { q: `#${tag}` }) }, `#${tag}`)),
  );
}

function compareBar(each, references, reference, params) {
  const names = Object.keys(references);
  if (names.length < 2) return null;
  const button = (name) =>
    make(
      'button.chip',
      { 'data-with': name, 'aria-pressed': String(name === reference), onclick: () => go(caseHash(each, null, { ...params, with: name })) },
      references[name],
    );
  const side = { base: 'baseline', both: 'expected or baseline' }[reference] ?? 'expected';
  return make(
    'div.crumb',
    quiet({ id: 'compared' }, 'Compare with'),
    make('div.chips', { role: 'group', 'aria-labelledby': 'compared' }, names.map(button)),
    reference === 'off' ? null : make('span.legend', make('span', `Differs from ${side}:`), make('span', make('del', `${side} only`)), make('span', make('ins', 'this run only'))),
  );
}

function contentNote(run) {
  const notes = {
    without_results: 'Results of tools, spans and sub-agents are left out here and in results.json, as the file has a size limit.',
    excerpt: 'Only the start of each question and answer is stored, as the file has a size limit.',
    none: 'The content of this run is not stored (content: none).',
  };
  const text = notes[run.level ?? 'full'];
  return [
    text && make('p.card.gap', text),
    run.redacted && make('p.card.gap', 'Secrets in this run are replaced by ***.'),
  ];
}

function conversation(run, each, content, reference) {
  const turns = run.turns ?? [];
  if (!turns.length) return make('p.card.gap', 'The trace has no turns.');
  if (run.level === 'none') return null;
  const isFailed = each.status === 'failed';
  const view = (turn) => {
    const index = turns.indexOf(turn);
    return turnView(turn, index, { reference, isFailed, scores: lowScores(each, content, index), findings: findingsOf(each, content, index) });
  };
  const folds = turns.map((turn, index) => !lowScores(each, content, index) && isAsBefore(turn, isFailed));
  if (!folds.includes(false)) return turns.map(view);
  return runsOf(folds).flatMap(([start, end]) => {
    const part = turns.slice(start, end);
    return folds[start] && part.length >= MIN_FOLDED_TURNS ? foldedTurns(part, start, view) : part.map(view);
  });
}

// Fewer unchanged turns between others are shown.
const MIN_FOLDED_TURNS = 3;

/** Whether a turn is as in the baseline, or without one as expected, and of a failed case also its calls. */
function isAsBefore(turn, isFailed) {
  if (turn.missing || (turn.baseline !== 'same' && turn.baseline !== undefined) || hasOtherResults(turn)) return false;
  const expected = turn.expected_calls && compareCalls(turn.expected_calls, turn.calls ?? []).rows;
  const isExpected = expected && !expected.some(({ mark }) => mark);
  if (turn.baseline === undefined) return isExpected && turn.expected_answer === turn.answer;
  return !isFailed || !expected || isExpected;
}

/** The start and end of each run of equal values. */
function runsOf(values) {
  const runs = [];
  values.forEach((value, index) => {
    if (index && values[index - 1] === value) runs.at(-1)[1] = index + 1;
    else runs.push([index, index + 1]);
  });
  return runs;
}

/** Turns that need no look, made when they are opened. */
function foldedTurns(part, start, view) {
  const shown = make('div.turns');
  const fill = () => {
    if (!shown.firstChild) shown.append(...part.map(view));
  };
  const like = part.every(({ baseline }) => baseline === 'same') ? 'as in the baseline' : 'as expected';
  return make(
    'details.card.fold.alike',
    { ontoggle: fill },
    make('summary', make('b', `${count(part.length)} turns ${like}`), quiet(` turns ${start + 1} to ${start + part.length}, none scored below a threshold`)),
    shown,
  );
}

/** What failed checks found in a turn, part by part, apart from answers, which they quote. */
function findingsOf(each, content, index) {
  const start = `turn ${index + 1}: `;
  return each.checks.flatMap(({ status, evaluator }, at) =>
    (status === 'failed' ? content.checks[at].misses ?? [] : [])
      .filter((miss) => miss.startsWith(start) || !/^turn \d/.test(miss) && content.run.turns.length === 1)
      .flatMap((miss) => miss.replace(start, '').split('; '))
      .filter((text) => !/^expected ['"]/.test(text))
      .map((text) => ({ evaluator: evaluator.name, text })),
  );
}

/** The checks that scored a turn of several below their threshold. */
function lowScores(each, content, index) {
  if (content.run.turns.filter((turn) => !turn.missing).length < 2) return null;
  const low = each.checks.flatMap((check, at) => {
    const value = content.checks[at].turn_scores?.[index];
    const { threshold, name } = check.evaluator;
    const isLow = check.status === 'failed' && threshold !== null && typeof value === 'number' && value < threshold;
    return isLow ? [`${name} ${score(value)}`] : [];
  });
  return low.length ? make('span.worse', `below threshold: ${low.join(', ')}`) : null;
}

function subagentsView(run) {
  return (run.subagents ?? []).map((agent) =>
    make(
      'details.card.fold',
      make('summary', `Sub-agent ${agent.name ?? ''} `, quiet(countOf(agent.turns.length, 'turn'))),
      agent.turns.map((turn, index) => turnView(turn, index, { reference: 'off', isFailed: false, scores: null, findings: [] })),
    ),
  );
}

function columnsView(run) {
  const columns = Object.entries(run.columns ?? {});
  if (!columns.length) return null;
  return make(
    'details.card.fold',
    make('summary', `Dataset row: ${countOf(columns.length, 'column')}`),
    terms('dl.facts', columns.map(([name, value]) => [name, { class: 'text' }, valueText(value)])),
  );
}

function callsCard(each) {
  const shown = each.checks.map((check) => [check, transcriptView(check, DATA.merged, contentOf(each).file)]).filter(([, view]) => view);
  if (!shown.length) return null;
  return make(
    'section.card.transcripts',
    { label: 'Evaluator input and output' },
    make('h2', 'Evaluator input and output'),
    shown.map(([, view]) => view),
  );
}

function caseFacts(each, content) {
  const { amounts, before = {} } = each;
  const { turns = [] } = content.run;
  const missing = turns.filter((turn) => turn.missing).length;
  const changed = (name, format, least) =>
    amounts[name] === undefined ? '' : [format(amounts[name]), ' ', amountDelta(amounts[name], before[name], format, least)];
  return make(
    'div.card',
    factsOf({
      'Eval case': content.eval_case ?? (content.unmatched_reason ? `none: ${content.unmatched_reason}` : 'none'),
      Trace: content.trace,
      File: content.file,
      Latency: changed('ms', milliseconds, 50),
      Tokens: changed('tokens', count, 1),
      Cost: changed('usd', dollars, 0.00005),
      Turns: missing ? `${turns.length - missing} of ${turns.length}${each.before || !HAS_BASELINE ? '' : '; totals are not compared'}` : '',
    }),
    content.warnings && list(content.warnings, 'warnings'),
  );
}
