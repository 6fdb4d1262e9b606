// The head of the overview: the verdict with its reasons, and what the run took.

function verdictView() {
  const { status, title, reasons, notes } = DATA.verdict;
  const others = reasons.slice(1);
  // Statistics are folded, and on a narrow screen all but the first reason.
  const short = (each) => each.replace(/^(.+ regressed): mean score (\S+ \u2192 \S+)(?: in both runs.*)? \(.*/, '$1 $2');
  const more = others.filter((each) => isNarrow.matches || short(each) !== each);
  const folded = list([...more, ...notes], 'why');
  const meta = make('p.meta', ...metaParts());
  const summary = dotted(more.length && countOf(more.length, isNarrow.matches ? 'more reason' : 'regression'), notes.length && countOf(notes.length, 'note'), isNarrow.matches && 'this run');
  return make(
    'section.card.verdict',
    { class: status, 'aria-labelledby': 'verdict' },
    DATA.verdict.incomplete
      ? make('p.note', pill('errored', 'Incomplete'), 'The run was interrupted.')
      : null,
    make('h1', { id: 'verdict' }, title, reasons.length > 0 && make('span', `: ${reasons[0]}`)),
    make('p.why', changesText()),
    !isNarrow.matches && others.length > 0 && make('p.why', dotted(...others.map(short))),
    make('div.notes', lostNotes(isNarrow.matches ? 1 : MAX_LINES), policyNote()),
    make('div.notes', isNarrow.matches ? null : meta, summary && make('details.fold', { open: isPrinted }, make('summary', summary), folded, isNarrow.matches && meta)),
  );
}

/** How the cases of both runs ended, by class; a number leads to the cases that it counts. */
function changesText() {
  if (!DATA.classes) return DATA.case_line;
  return [
    `Cases against ${baselineName()}: `,
    DATA.classes.map(([state, amount, words, notes], index) => [
      index ? ', ' : '',
      make('a', { href: state in CLASSES ? writeHash('/', { f: CLASSES[state][0] }) : REMOVED_CASES }, make(STATES.indexOf(state) < 4 && state in CLASSES ? 'b' : 'span', `${count(amount)} ${words}`)),
      notes,
    ]),
  ];
}

function metaParts() {
  const { repository, pull_request: pull, title, date, commit, url, branch } = DATA.run;
  const page = DATA.run.pull_request_url;
  const request = pull ? `#${pull} ${title ?? ''}` : '';
  const { now, age = '' } = DATA.recorded ?? {};
  return [
    repository && make('b', repository),
    request ? (page ? outside(page, request) : make('span', request)) : null,
    !pull && branch && make('span', branch),
    commit && commitView(commit),
    DATA.baseline && !DATA.baseline.missing
      ? make('span', 'baseline ', DATA.baseline.branch ? `${DATA.baseline.branch}@` : '', DATA.baseline.commit ? commitView(DATA.baseline.commit) : make('code', baselineName()), age)
      : null,
    now ? make('span', `recorded ${dateText(now)}`) : date ? make('span', dateText(date)) : null,
    DATA.models && make('span', `agent ${DATA.models}`),
    DATA.verdict.spending && make('span', DATA.verdict.spending),
    url && outside(url, 'Workflow run'),
  ];
}

/** A commit, with a link to its page where that of the run or the pull request is known. */
function commitView(commit) {
  const { url, pull_request_url: page } = DATA.run;
  const [, repository] = /^(.+?)\/(?:actions|pull)\//.exec(url || page || '') ?? [];
  const name = make('code', commit.slice(0, 12));
  return repository ? outside(`${repository}/commit/${commit}`, name) : name;
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
  const rows = policy.notes.slice(0, isNarrow.matches ? 1 : 2).map(([word, subject, before, after, effect]) =>
    make('p.note', pill('errored', word), make('span', make('code', subject), before && [' ', make('del', before), ' \u2192 ', make('ins', after)], effect && `: ${effect}`)),
  );
  const left = policy.changes.length + (policy.omitted ?? 0) - rows.length;
  return [...rows, left > 0 ? make('p.note', make('a', { href: '#/messages' }, `${count(left)} more`)) : null];
}

/** Of checks that passed or failed, as in the verdict; null without any. */
function passRate(statuses) {
  const { passed, failed } = totalsOf(statuses);
  return passed + failed ? passed / (passed + failed) : null;
}

function tilesView() {
  const { metrics, verdict } = DATA;
  const checks = CASES.flatMap((each) => each.checks);
  const required = checks.filter(({ evaluator }) => evaluator.required);
  const advisory = checks.length - required.length;
  const { missing } = DATA.lost;
  const statuses = required.map(({ status }) => status);
  const totals = totalsOf(statuses);
  const rate = passRate(statuses);
  const rateBefore = passRate(required.map(({ before }) => before?.[0])) ?? rate;
  const { run, common, baseline } = metrics;
  // An amount is compared over the cases that recorded it in both runs, and that of these is shown, as in the comment.
  const tile = (name, label, read, { format, least, noise = DATA.noise[0] }, more) => {
    const [now, before] = [common && read(common), baseline && read(baseline)];
    const value = now ?? read(run);
    if (value == null) return null;
    const all = CASES.filter(({ amounts }) => amounts[name] !== undefined).length;
    const compared = common?.[{ ms: 'latency_cases', tokens: 'token_cases', usd: 'cost_cases' }[name]];
    const isSame = format(now) === format(before) || Math.abs(now / before - 1) <= 0.005;
    const change = !isSame && delta(now - before, { format: () => `from ${format(before)}`, good: isNoise(now, before, noise) ? 0 : -1, least });
    const under = now == null || before == null ? null : [change || (now === before ? 'unchanged' : 'about the same'), compared < all && make('span', { title: 'that both runs recorded' }, ` in ${countOf(compared, 'case')}`)];
    return make('div.card.tile', make('dt', label), make('dd', format(value)), make('dd.under', under, more));
  };
  const latency = { format: milliseconds, least: 20 };
  const large = (name, f, sort) => name in metrics.large && make('div', make('a', { href: writeHash('/compare', { f, sort }) }, `${DATA.large_factor}\u00d7 or more in ${countOf(metrics.large[name].cases, 'case')}`));
  return make(
    'dl.tiles',
    make(
      'div.card.tile',
      make('dt', `Pass rate of ${advisory ? 'required ' : ''}checks`),
      make(
        'dd',
        rate === null ? '\u2013' : percent(rate, rateBefore, verdict.required ?? rate),
        ' ',
        verdict.required === null ? '' : make('small', `required ${percent(verdict.required, rate)} `),
        rate === null ? null : make('small', { title: DATA.baseline?.rescored && 'with these evaluators' }, delta(rate - rateBefore, { format: () => `from ${percent(rateBefore, rate)}`, least: 0.0005 })),
      ),
      make('dd', shareBar(totals)),
      make('dd.legend', ...legendOf(totals), missing > 0 && make('span', make('i.errored'), `${count(missing)} no longer evaluated`), advisory ? make('span', `${count(advisory)} advisory`) : null),
    ),
    tile('ms', 'Latency of a case, p50', (each) => each.latency_ms?.p50, latency),
    tile('ms', 'Latency of a case, p95', (each) => each.latency_ms?.p95, { ...latency, noise: DATA.noise[1] }, large('latency_ms', 'large_ms', 'slower')),
    tile('tokens', 'Input + output tokens', (each) => each.tokens && each.tokens.input + each.tokens.output, { format: count, least: 1 }, large('tokens', 'large_tokens', 'longer')),
    tile('usd', run.priced_cases ? prose('Agent cost (from `prices`)') : 'Agent cost', (each) => each.cost_usd, { format: dollars, least: 0.00005 }, [large('cost_usd', 'large_usd', 'dearer'), metrics.models_before?.length > 0 && make('div', DATA.models)]),
  );
}

function legendOf(totals) {
  return LISTED_STATUSES.filter((status) => totals[status])
    .map((status) => make('span', make('i', { class: status }), `${count(totals[status])} ${status}`));
}
