// The head of the overview: the verdict with its reasons, and what the run took.

function verdictView() {
  const { status, title, reasons } = DATA.verdict;
  const changes = HAS_BASELINE ? changeSentence() : '';
  return make(
    'section.card.verdict',
    { class: status, 'aria-labelledby': 'verdict' },
    DATA.verdict.incomplete
      ? make('p.note', pill('errored', 'Incomplete'), 'The run was interrupted.')
      : null,
    make('h1', { id: 'verdict' }, title, reasons.length ? `: ${reasons[0]}` : ''),
    changes ? make('p.why', changes) : null,
    otherReasons(reasons.slice(1)),
    isNarrow.matches ? null : make('p.meta', ...metaParts()),
    policyNote(),
  );
}

/** What the run was, apart from the verdict. */
function runView() {
  return make('section.card.run', { 'aria-label': 'Run' }, make('p.meta', ...metaParts()));
}

function otherReasons(reasons) {
  if (reasons.length < 3) return list(reasons, 'why');
  const summary = make('summary', `${countOf(reasons.length, 'more reason')}`);
  return make('details.fold', summary, list(reasons, 'why'));
}

/** "By case, against the baseline: 2 new failures, 1 fixed; 6 answers changed." */
function changeSentence() {
  const of = (state) => CASES.filter((each) => each.state === state).length;
  const parts = [
    [of('new_failure'), 'new failure'],
    [of('error'), 'error'],
    [of('still_failing'), 'still failing', 'still failing'],
    [CASES.filter(FILTERS.fell[1]).length, 'lower score that still passes', 'lower scores that still pass'],
    [of('fixed'), 'fixed', 'fixed'],
    [CASES.filter((each) => each.answer_changed).length, 'changed answer'],
    [of('new_case'), 'new case'],
  ].filter(([amount]) => amount);
  const texts = parts.map(([amount, one, many]) =>
    many ? `${count(amount)} ${amount === 1 ? one : many}` : countOf(amount, one),
  );
  return `By case, against the baseline: ${[...texts, ...(DATA.baseline.gone ?? [])].join(', ') || 'no change'}.`;
}

function metaParts() {
  const { repository, pull_request: pull, title, date, commit, url, branch } = DATA.run;
  const seconds = CASES.flatMap((each) => each.checks).reduce((sum, { seconds: own = 0 }) => sum + own, 0);
  const cached = CASES.flatMap((each) => each.checks).filter((check) => check.cached).length;
  const page = DATA.run.pull_request_url;
  const request = pull ? `#${pull} ${title ?? ''}` : '';
  const models = DATA.metrics?.models ?? [];
  return [
    repository ? make('b', repository) : null,
    request ? (page ? outside(page, request) : make('span', request)) : null,
    !pull && branch ? make('span', branch) : null,
    commit ? make('code', commit.slice(0, 12)) : null,
    DATA.baseline && !DATA.baseline.missing
      ? make('span', 'baseline ', make('code', baselineName()))
      : null,
    date ? make('span', dateText(date)) : null,
    seconds
      ? make('span', `evaluators took ${milliseconds(seconds * 1000)}`, cached ? `, ${countOf(cached, 'check')} cached` : '')
      : null,
    models.length ? make('span', `agent model ${models.slice(0, 3).join(', ')}`) : null,
    DATA.verdict.spending ? make('span', DATA.verdict.spending) : null,
    url ? outside(url, 'Workflow run') : null,
  ];
}

/** A link to the page of the repository; other addresses are text. */
function outside(url, text) {
  return /^https?:\/\//.test(url)
    ? make('a', { href: url, rel: 'noopener noreferrer' }, text)
    : make('span', text);
}

function baselineName() {
  const { name = '', commit } = DATA.baseline ?? {};
  return commit ? commit.slice(0, 12) : name;
}

/** One line for the first loosened values, and a link to all of them. */
function policyNote() {
  const { policy } = DATA;
  if (!policy?.changes?.length) return null;
  const rows = policy.changes.slice(0, 2).map((cells) => {
    const [after, before, subject] = [...cells].reverse();
    return make(
      'p.note',
      pill('errored', 'Policy loosened'),
      make('span', make('code', subject), ' ', before ? [make('del', before), ' \u2192 '] : '', make('ins', after)),
    );
  });
  const left = policy.changes.length + (policy.omitted ?? 0) - rows.length;
  return [...rows, left > 0 ? make('p.note', make('a', { href: '#/messages' }, `${count(left)} more`)) : null];
}

/** Of checks that passed or failed, as in the verdict; null without any. */
function passRate(statuses) {
  const [passed, failed] = ['passed', 'failed'].map((status) => statuses.filter((each) => each === status).length);
  return passed + failed ? passed / (passed + failed) : null;
}

function tilesView() {
  const { totals, metrics, verdict } = DATA;
  const checks = CASES.flatMap((each) => each.checks);
  const required = checks.filter(({ evaluator }) => evaluator.required);
  const rate = passRate(required.map(({ status }) => status));
  const rateBefore = passRate(required.map(({ before }) => before?.[0])) ?? rate;
  const { run, common, baseline } = metrics;
  const isPart = common && common.cases < run.cases;
  const change = (read, { format, least }) => {
    const [now, before] = [common && read(common), baseline && read(baseline)];
    if (now == null || before == null) return null;
    const shown = isPart ? format : () => `from ${format(before)}`;
    return [delta(now - before, { format: shown, good: -1, least }) ?? 'unchanged', isPart ? ` in ${count(common.cases)} of ${countOf(run.cases, 'case')}` : ''];
  };
  const tokens = (each) => each.tokens && each.tokens.input + each.tokens.output;
  const latency = { format: milliseconds, least: 20 };
  const tile = (label, value, under) =>
    value !== '\u2013' && make('div.card.tile', make('dt', label), make('dd', value), make('dd.under', under));
  return make(
    'dl.tiles',
    make(
      'div.card.tile',
      make('dt', `Pass rate of ${required.length < checks.length ? 'required ' : ''}checks`),
      make(
        'dd',
        rate === null ? '\u2013' : percent(rate, rateBefore),
        ' ',
        verdict.required === null ? '' : make('small', `required ${percent(verdict.required)} `),
        rate === null ? null : make('small', delta(rate - rateBefore, { format: () => `from ${percent(rateBefore, rate)}`, least: 0.0005 })),
      ),
      make('dd', shareBar(totals)),
      make('dd.legend', ...legendOf(totals)),
    ),
    tile('Latency of a case, p50', milliseconds(run.latency_ms?.p50), change((each) => each.latency_ms?.p50, latency)),
    tile('Latency of a case, p95', milliseconds(run.latency_ms?.p95), change((each) => each.latency_ms?.p95, latency)),
    tile(
      'Tokens of all cases',
      run.tokens ? count(tokens(run)) : '\u2013',
      change(tokens, { format: count, least: 1 }),
    ),
    tile(
      'Agent cost of all cases',
      dollars(run.cost_usd),
      change((each) => each.cost_usd, { format: dollars, least: 0.00005 }),
    ),
  );
}

function legendOf(totals) {
  return ['passed', 'failed', 'errored', 'skipped']
    .filter((status) => totals[status])
    .map((status) => make('span', make('i', { class: status }), `${count(totals[status])} ${status}`));
}
